"""Forged model and fleet files, by the thousand: refused, or opened as a model that predicts; nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import forge
import numpy as np
import pytest
from processes import report

import onlinegp as ogp
from forging import forged_file
from models import stream
from onlinegp.kernels import RBF

FORGE = Path(forge.__file__)
ENV = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (FORGE.parent, FORGE.parents[1])))}
ANSWERS = {"files", "refused", "predicts", "raises", "MB of growth"}


def attacked(seed: int, count: int) -> dict[str, int]:
    """Open forged files in a process of its own; it must come to its end."""
    done = subprocess.run(
        [sys.executable, FORGE, str(seed), str(count)], capture_output=True, text=True, timeout=1800, env=ENV
    )
    assert done.returncode == 0, f"seed {seed} ended with {done.returncode}: {done.stderr[-2000:]}"
    found = json.loads(done.stdout)
    report(f"forged files, seed {seed}: {found}")
    assert found.keys() <= ANSWERS, done.stderr[-2000:]
    assert found["files"] == count
    return found


def test_forged_files():
    found = attacked(1, 500)
    assert found["refused"] > 250
    assert found["predicts"] > 10
    assert found["MB of growth"] < 50


@pytest.mark.attack
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_hundred_thousand_forged_files(seed):
    assert attacked(seed, 10_000)["MB of growth"] < 50


# Small files that ask for much


def small(change) -> bytes:
    """Return a file of about a kilobyte with its header or its record changed."""
    return forged_file(ogp.KLMS(RBF(0.7)).fit(*stream(1)).to_bytes(), lambda *parts: change(*parts) and None)


def params(**values):
    return lambda header, contents: header["model"]["params"].update(values)


def learned(**values):
    return lambda header, contents: contents.update({name.replace("__", "."): value for name, value in values.items()})


def nested(header, contents):
    model = header["model"]
    for _ in range(300):
        model = {"class": "KLMS", "module": "onlinegp", "params": {"kernel": {"model": model}}}
    header["model"] = model


SMALL = {
    "features": learned(features=10**9),
    "outputs": learned(outputs=10**9, single=0),
    "both": learned(features=10_000, outputs=10_000, single=0),
    "size": learned(learned__size=10**6),
    "seen": learned(learned__seen=-(2**63)),
    "largest": learned(largest=-1.0),
    "names": lambda header, contents: header.update(names=["\ud800", "b"]),
    "step": params(step=10**400),
    "degree": params(kernel={"kernel": [{"kernel": "Polynomial", "degree": 10**9}]}),
    "huge degree": params(kernel={"kernel": [{"kernel": "Polynomial", "degree": 10**300}]}),
    "empty array": learned(learned__centers=np.empty((0, 2**40))),
    "floats": lambda header, contents: contents.update({"learned.centers": contents["learned.centers"].astype("f4")}),
    "nested": nested,
    "engine": params(engine="native", dtype="float32"),
}


def test_small_files_take_little_memory(tmp_path):
    """With 50 MB more than the process had before them, none of them needs more."""
    for name, change in SMALL.items():
        (tmp_path / name).write_bytes(small(change))
    code = f"""
import resource
import forge
from pathlib import Path
forge.attack(0, 50)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (50 << 20),) * 2)
for path in sorted(Path({str(tmp_path)!r}).iterdir()):
    print(path.name, forge.fate(path.read_bytes()), sep=": ")
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120, env=ENV
    )
    assert done.returncode == 0, done.stderr
    fates = dict(line.split(": ") for line in done.stdout.splitlines())
    assert fates.keys() == SMALL.keys()
    assert set(fates.values()) <= {"refused", "predicts", "raises"}, fates
    refused = {name for name, what in fates.items() if what == "refused"}
    assert refused >= {"features", "outputs", "size", "seen", "largest", "step", "empty array", "floats", "nested"}


# Files that deserve a reason


def spoiled(entry: str, *, without: str = "") -> bytes:
    """Return a small file whose header text has one more entry at its end, and lacks another."""
    data = ogp.KLMS(RBF(0.7)).to_bytes()
    length = int.from_bytes(data[:8], "little")
    header = {name: value for name, value in json.loads(header_text(data)).items() if name != without}
    own = json.loads(data[8 : 8 + length])
    own["__metadata__"]["onlinegp"] = json.dumps(header)[:-1] + f", {entry}}}"
    text = json.dumps(own).encode()
    return forge.mended(len(text).to_bytes(8, "little") + text + data[8 + length :])


def header_text(data: bytes) -> str:
    """Return the header as it stands in a file."""
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["onlinegp"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('"kind": "model"', "appears twice"),
        ('"more": NaN', "NaN is not a number"),
        ('"more": -Infinity', "-Infinity is not a number"),
        ('"more": 1', "unknown entry 'more'"),
        ('"more": ' + "[" * 10_000 + "]" * 10_000, "not valid JSON"),
        ('"more": ' + "1" * 10_000, "not valid JSON"),
    ],
)
def test_odd_json_is_refused(entry, message):
    with pytest.raises(ogp.ModelFileError, match=message):
        ogp.from_bytes(spoiled(entry))


@pytest.mark.parametrize("depth", [3, 51, 300, 1000, 100_000])
def test_models_within_models_without_end_are_refused(depth):
    inner, outer = (
        json.loads(header_text(model.to_bytes()))["model"] for model in (ogp.KLMS(), ogp.Scaled(ogp.KLMS()))
    )
    before, after = json.dumps(outer).split(json.dumps(inner))
    data = spoiled('"model": ' + before * depth + json.dumps(inner) + after * depth, without="model")
    if depth == 3:
        assert repr(ogp.from_bytes(data)) == "Scaled(model=Scaled(model=Scaled(model=KLMS())))"
    else:
        with pytest.raises(ogp.ModelFileError, match=r"more than 50 deep|not valid JSON"):
            ogp.from_bytes(data)


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_a_kernel_beyond_all_numbers_breaks_down_by_name(engine):
    model = ogp.from_bytes(ogp.KNLMS(1e308 * RBF(), engine=engine).to_bytes())
    with pytest.raises(ogp.BreakdownError, match="not finite"), np.errstate(all="ignore"):
        model.predict(np.zeros((1, 2)))
