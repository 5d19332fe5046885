"""A model file or a checkpoint whose checksum is right and whose contents are not: refused by name, never believed."""

from __future__ import annotations

import copy
import json
import math
import random

import pytest
from safetensors.numpy import save
from shell import FIXED, inside, write_csv

from onlinegp.files import container
from onlinegp.files.container import ModelFileError
from onlinegp.streams.running.checkpoint import checked, from_bytes
from onlinegp.streams.running.event_scenes import Scenes
from onlinegp.streams.running.flags import Flags
from onlinegp.streams.running.member_weights import Weights
from onlinegp.streams.running.score import Curves, Score
from onlinegp.streams.running.surprises import Surprises

ODD = [None, True, -1, 0, 1, 2**70, 1.5, math.nan, math.inf, -1e300, "", "x", [], [1], ["x"], [[]], {}, {"x": 1}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Checkpoints and saved models: with lags and a horizon, with features, with curves."""
    folder = tmp_path_factory.mktemp("stored")
    write_csv(folder / "data.csv", 150)
    lags = ["--lags", "3", "--horizon", "2", "--robust"]
    for name, options in (("a", ["--report", "report.html", "--flag", "0.1"]), ("b", lags)):
        places = ["--out", f"{name}.csv", "--checkpoint", name, "--save", f"{name}.ogp"]
        inside("run", "data.csv", *FIXED, *options, *places, cwd=folder)
    tuned = ["--model", "krlst", "--budget", "10", "--tune", "50", "--out", "c.csv", "--save", "c.ogp"]
    inside("run", "data.csv", *lags, *tuned, cwd=folder)
    return folder


def forged(data: bytes, stream: object) -> bytes:
    """Return the file with another stream's entry, and the checksum made right."""
    header, arrays = container.from_bytes(data)
    header["extra"]["stream"] = stream
    text = json.dumps({"crc32": container.NO_CRC.decode(), "format": container.FORMAT, **header})  # NaN too
    data = save(arrays, metadata={"onlinegp": text})
    place = data.index(container.BEFORE_CRC) + len(container.BEFORE_CRC)
    return data[:place] + container.checksum(data, place) + data[place + len(container.NO_CRC) :]


def stream_of(data: bytes) -> dict:
    return container.from_bytes(data)[0]["extra"]["stream"]


def resumed(stream: dict) -> dict:
    """Load what the observers of a run have stored, and return the stream; refused as `--resume` does."""
    fresh = {
        "score": Score(0.95),
        "curves": Curves(),
        "weights": Weights(),
        "flags": Flags(),
        "surprises": Surprises(),
        "scenes": Scenes(),
    }
    for name, observer in fresh.items():
        if stream.get(name) is not None:
            observer.from_json(stream[name])
            assert observer.to_json() == stream[name]
    return stream


def places(value: object, path: tuple = ()) -> list[tuple]:
    """Return the path to every value within a value; of long lists the first and the last."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, list) and value:
        for i in {0, len(value) - 1}:
            found += places(value[i], (*path, i))
    return found


def changed(stream: dict, path: tuple, value: object, *, remove: bool = False) -> dict:
    stream = copy.deepcopy(stream)
    inner = stream
    for key in path[:-1]:
        inner = inner[key]
    if remove:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return stream


@pytest.mark.parametrize("name", ["a/checkpoint.ogp", "b/checkpoint.ogp", "a.ogp", "b.ogp"])
def test_what_was_written_is_accepted(folder, name):
    data = (folder / name).read_bytes()
    assert resumed(from_bytes(data)[1]) == stream_of(data)
    assert from_bytes(forged(data, stream_of(data)))[1] == stream_of(data)


WRONG = [
    (("columns",), None),
    (("columns", "features"), ["x0", "x0"]),
    (("columns", "features"), ["x0"]),
    (("columns", "target"), 5),
    (("level",), 1.0),
    (("predictor",), {"scaling": {}}),  # of a version whose models had other units
    (("position", "offset"), -1),
    (("position", "offset"), 1.5),
    (("rows",), True),
    (("output",), "x"),
    (("rejects", "length"), None),
    (("score", "within"), [1]),
    (("score", "pit", 0), -1),
    (("score", "squares"), math.inf),
    (("score", "add"), 1),
    (("curves", "width"), 0),
    (("curves", "buckets", 0), []),
    (("curves", "tail", 0), [1.0]),
    (("flags", "totals", 0), -1),
    (("flags", "totals"), [1]),
    (("flags", "totals"), {"other": 1}),
    (("flags", "range.low"), 1e300),
    (("flags", "range.odd"), [0.0] * 12),
    (("flags", "worst"), ["x"]),
    (("flags", "worst"), ["{}"]),
    (("flags", "worst"), ["[]"] * 201),
    (("flags", "since"), ["a", "b"]),
    (("flags", "written"), -1),
    (("flags", "shift"), 0.5),
    (("surprises",), [{}] * 11),
    (("surprises", "row"), [1] * 11),
    (("surprises", "row", 0), 0),
    (("surprises", "z", 0), None),
    (("surprises", "keys", 0), '{"time": 5}'),
    (("surprises", "keys", 0), "x"),
    (("commands",), [5]),
    (("commands",), ["{}"] * 1001),
    (("commands",), None),
    (("curves", "last"), []),
    (("curves", "last", 0), "x"),
    (("weights", "stride"), 0),
    (("weights", "members"), [1]),
    (("weights", "places"), [0]),
]
WEIGHTS = {"members": ["a", "b"], "stride": 2, "places": [0, 3], "counts": [2, 1], "sums": [[0.5, 1.5], [0.2, 0.8]]}
WRONG_WEIGHTS = [
    ("members", ["a"]),
    ("places", [3, 0]),
    ("places", [0]),
    ("counts", [3, 1]),
    ("counts", [0, 1]),
    ("sums", [[0.5, 1.5], [0.2, -0.8]]),
    ("sums", [[0.5, 1.5], [0.2, 1.8]]),
    ("sums", [[0.5, 1.5], [0.2]]),
    ("sums", [[0.5, math.nan], [0.2, 0.8]]),
]


WRONG_MODELS = [
    (("lags",), -1, "lags must be at least 1"),
    (("lags",), 10**9, "lags must be at most"),
    (("lags",), 4, "must be float64 of shape|one for each feature"),
    (("horizon",), 0, "horizon must be at least 1"),
    (("model", "model", "params", "rows"), 0, "rows must be at least 1"),
    (("model", "model", "params", "tuning_delay"), 2.0, "tuning_delay must be at most 1"),
    (("model", "model", "params", "fixed"), ["step"], "fixed must name parameters"),
    (("model", "model", "params", "model", "model", "params", "bound"), 0.0, "bound must be positive"),
]


@pytest.mark.parametrize(("path", "value", "message"), WRONG_MODELS, ids=lambda value: str(value)[:50])
def test_a_wrong_model_of_a_stream_is_refused(folder, path, value, message):
    """Lags, tunings and bounds are parameters of the model, which checks them itself."""
    header, arrays = container.from_bytes((folder / "c.ogp").read_bytes())
    assert header["model"]["class"] == "Lagged"
    header["model"]["params"] = changed(header["model"]["params"], path, value)
    with pytest.raises(ModelFileError, match=message):
        from_bytes(container.to_bytes(header, arrays))


@pytest.mark.parametrize(("path", "value"), WRONG, ids=lambda value: str(value)[:50])
def test_wrong_entries_are_refused(folder, path, value):
    data = (folder / "a" / "checkpoint.ogp").read_bytes()
    with pytest.raises(ModelFileError, match=r"the entry 'stream' is not valid|is not a number"):
        resumed(from_bytes(forged(data, changed(stream_of(data), path, value)))[1])


def test_no_value_of_another_kind_gives_a_traceback(folder):
    """Every value of the entry replaced by odd ones, or left out: refused, or the commands work with it."""
    rng, refused, accepted = random.Random(0), 0, []
    for name in ("a/checkpoint.ogp", "b/checkpoint.ogp"):
        data = (folder / name).read_bytes()
        model, stream = from_bytes(data)
        for path in places(stream):
            for value in [*rng.sample(ODD, 2), ...]:
                odd = changed(stream, path, value, remove=value is ...)
                try:
                    accepted.append((data, resumed(checked(odd, model))))
                except ModelFileError:
                    refused += 1
    for data, odd in rng.sample(accepted, 12):
        (folder / "forged.ogp").write_bytes(forged(data, odd))
        for args in (["inspect", "forged.ogp"], ["predict", "forged.ogp", "data.csv", "--out", "o.csv", "--quiet"]):
            done = inside(*args, code=None, cwd=folder)
            assert done.returncode == 0 or b"onlinegp: " in done.stderr
    assert refused > 200


def test_a_forged_checkpoint_is_not_resumed(folder):
    data = (folder / "a" / "checkpoint.ogp").read_bytes()
    kept = (folder / "a.csv").read_bytes()
    args = ["run", "data.csv", *FIXED, "--flag", "0.1", "--out", "a.csv", "--checkpoint", "c", "--resume"]
    (folder / "c").mkdir()
    for path, value in ((("score", "n"), "x"), (("position",), {}), (("position",), {"row": 5}), (("settings",), [])):
        for file in ("checkpoint.ogp", "checkpoint-previous.ogp"):
            (folder / "c" / file).write_bytes(forged(data, changed(stream_of(data), path, value)))
        told = inside(*args, code=4, cwd=folder).stderr.decode()
        assert "onlinegp: " in told
        assert (folder / "a.csv").read_bytes() == kept


@pytest.mark.parametrize(("name", "value"), WRONG_WEIGHTS)
def test_weights_that_cannot_be_are_refused(folder, name, value):
    data = (folder / "a/checkpoint.ogp").read_bytes()
    good = stream_of(data) | {"weights": WEIGHTS}
    assert resumed(from_bytes(forged(data, good))[1])["weights"] == WEIGHTS
    with pytest.raises(ModelFileError, match=r"weights: .* must|is not a number"):
        resumed(from_bytes(forged(data, good | {"weights": WEIGHTS | {name: value}}))[1])
