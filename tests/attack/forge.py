"""Forged model and fleet files: what anybody could write who knows the format, with the checksum right again.

    PYTHONPATH=tests python tests/attack/forge.py SEED COUNT

opens COUNT of them under a limit of 1 GB of memory and of 2 s of processor time for each, and prints what came of them.
"""

from __future__ import annotations

import collections
import contextlib
import json
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import onlinegp as ogp
from forging import forged_file, with_checksum
from models import LINEAR, LOCAL, MODELS, WRAPPED, stream
from onlinegp.files.container import BEFORE_CRC, NO_CRC, checksum
from onlinegp.files.container import from_bytes as opened
from onlinegp.files.container import to_bytes as written

MEMORY, SECONDS = 1 << 30, 2.0
ODD = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        0.5,
        -0.0,
        1e-320,
        1e308,
        -1e308,
        10**9,
        2**31,
        2**32 + 1,
        2**53,
        2**62,
        2**63,
    ),
    *(2**64, 10**300, 10**400, -(10**300), "", "x", "inf", "\x00", "\ud800", "\u202e", "float32", "python", "learned"),
    *([], {}, [[]], [1.0], [1.0, 2.0], [1.0] * 1000, ["a", "b"], {"kernel": []}, {"number": "nan"}, {"number": "inf"}),
    *({"number": 10**400}, {"part": "Quantized", "fields": {"radius": -1}}, {"part": [], "fields": {}}, {"model": {}}),
    {"kernel": [{"kernel": "RBF"}, {"kernel": "Scaled", "variance": 1e308}]},
    {"kernel": [{"kernel": "Polynomial", "degree": 10**9}]},
    {"kernel": [{"kernel": "Polynomial", "degree": 10**300}]},
    {"kernel": [{"kernel": "RBF", "length_scale": [1.0] * 10_000}]},
    {"kernel": [{"kernel": "RBF", "length_scale": 1e-300}]},
    {"kernel": [{"kernel": "Periodic", "period": 1e-300}]},
    {"kernel": [{"kernel": "Linear"}] + 3000 * [{"kernel": "Scaled"}]},
    {"kernel": 3000 * [{"kernel": "RBF"}] + 2999 * [{"kernel": "Sum"}]},
]
DTYPES = ["F64", "F32", "F16", "BF16", "I64", "I32", "I8", "U8", "U64", "BOOL", "C64", "F8_E4M3", "F4", "X", "", 1]


def originals() -> list[bytes]:
    """Return good files: models, untrained and trained, with two outputs, on the Python engine too; fleets likewise."""
    X, y = stream(40)
    good = []
    for model in (MODELS | LINEAR | LOCAL).values():
        fresh = ogp.from_bytes(model.to_bytes())
        good += [fresh.to_bytes(), fresh.fit(X, y).to_bytes(), fresh.fit(X, np.stack([y, -y], 1)).to_bytes()]
        slow = ogp.from_bytes(model.to_bytes())
        if "engine" in slow.get_params():
            slow.set_params(engine="python")
        good.append(slow.fit(X[:12], y[:12]).to_bytes())
        for fleet in (ogp.Fleet(model), ogp.Fleet(slow.__class__(**slow.get_params(deep=False)))):
            good += [fleet.to_bytes(), fleet.learn(list("abcab") * 8, X, y).to_bytes()]
    for model in WRAPPED.values():
        fresh = ogp.from_bytes(model.to_bytes())
        good += [fresh.to_bytes(), fresh.fit(X, y).to_bytes()]
        good.append(ogp.Fleet(model).learn(list("abcab") * 8, X, y).to_bytes())
    return good


# Mutations


def mended(data: bytes) -> bytes:
    """Return a file with the checksum that belongs to it, if there is a place for one."""
    place = data.find(BEFORE_CRC) + len(BEFORE_CRC)
    if place < len(BEFORE_CRC):
        return data
    return data[:place] + checksum(data, place) + data[place + len(NO_CRC) :]


def raw(rng: np.random.Generator, data: bytes) -> bytes:
    """Change, drop, repeat or cut some bytes anywhere."""
    body = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        i, n = (int(k) for k in rng.integers(0, [len(body) + 1, 40]))
        what = rng.integers(5)
        if what == 0:
            body[i : i + 1] = rng.bytes(1)
        elif what == 1:
            del body[i : i + n]
        elif what == 2:
            body[i:i] = body[i : i + n]
        elif what == 3:
            del body[i:]
        else:
            body[:8] = int(rng.choice([0, 1, len(body), 2**31, 2**62])).to_bytes(8, "little")
        if not body:
            break
    return mended(bytes(body)) if rng.integers(2) else bytes(body)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Return each container of a JSON tree with each of its keys or indices."""
    found, waiting = [], [tree]
    while waiting:
        inner = waiting.pop()
        entries = list(inner.items() if isinstance(inner, dict) else enumerate(inner))
        found += [(inner, key) for key, _ in entries]
        waiting += [value for _, value in entries if isinstance(value, dict | list)]
    return found


def nested(rng: np.random.Generator, value: Any) -> Any:
    """Put a value into many lists, objects, or models."""
    depth, what = int(rng.choice([1, 3, 100, 900, 3000])), rng.integers(3)
    for _ in range(depth):
        if what == 2:
            value = {"model": {"class": "KLMS", "module": "onlinegp", "params": {"kernel": value}}}
        else:
            value = [value] if what else {"model": value}
    return value


def header(rng: np.random.Generator, data: bytes) -> bytes:
    """Change what the header says."""
    entries, arrays = opened(data)
    for _ in range(rng.integers(1, 3)):
        inner, key = (found := places(entries))[rng.integers(len(found))]
        what = rng.integers(6)
        if what == 0 and isinstance(inner, dict):
            inner[str(ODD[rng.integers(len(ODD))])[:20]] = inner.pop(key)
        elif what == 1:
            del inner[key]
        elif what == 2:
            inner[key] = nested(rng, inner[key])
        else:
            inner[key] = json.loads(json.dumps(ODD[rng.integers(len(ODD))]))  # each entry an object of its own
        if not entries:
            break
    try:
        return written(entries, arrays)
    except (RecursionError, ValueError):  # too deep, or too large, to be written in this way
        return data


def array(rng: np.random.Generator, data: bytes) -> bytes:
    """Change the arrays."""
    entries, arrays = opened(data)
    if not arrays:
        return written(entries, {"more": np.zeros(rng.integers(3))})
    name = sorted(arrays)[rng.integers(len(arrays))]
    values = arrays[name].copy()
    what = rng.integers(8)
    with np.errstate(all="ignore"):
        if what == 0:
            arrays.pop(name)
        elif what == 1:
            arrays[str(rng.choice([*arrays, "more", "numbers:x", "shapes:x", ":"]))] = values
        elif what == 2:
            arrays[name] = values.astype(rng.choice(["f8", "f4", "f2", "i8", "i4", "u1", "?", "c8"]))
        elif what == 3:
            shape = [(-1,), (1, -1), (-1, 1), (0, 2**40), (0,), ()][rng.integers(6)]
            with contextlib.suppress(ValueError):
                arrays[name] = (values if shape and 0 not in shape else values.ravel()[: not shape]).reshape(shape)
        elif what == 4:
            arrays[name] = np.concatenate([values.ravel()] * int(rng.integers(2, 4)))
        elif what == 5:
            arrays[name] = values[: rng.integers(len(values) + 1)] if values.ndim else values
        elif values.size:
            odd = rng.choice([0, 1, -1, 5, 1e-300, 1e150, 1e300, -1e300, np.nan, np.inf, 2**31, 2**62, -(2**63)])
            pick = slice(None) if what == 6 else rng.integers(values.size)
            values.reshape(-1)[pick] = np.array(odd).astype(values.dtype)
            arrays[name] = values
    return written(entries, arrays)


def layout(rng: np.random.Generator, data: bytes) -> bytes:
    """Change what safetensors itself says of the arrays, or say it twice, or in odd JSON."""
    length = int.from_bytes(data[:8], "little")
    own, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    names = [name for name in own if name != "__metadata__"]
    what = rng.integers(6)
    if what == 0 or not names:
        own["__metadata__"] = [None, [], {}, {"onlinegp": 1}, {"onlinegp": "{}"}, {"onlinegp": "[]"}][rng.integers(6)]
    elif what == 1:
        own[names[rng.integers(len(names))]]["dtype"] = DTYPES[rng.integers(len(DTYPES))]
    elif what == 2:
        shapes = [[], [0], [2**62], [2**32, 2**32], [0, 2**63], [-1], [1.5], "x", [2**64], [1] * 100]
        own[names[rng.integers(len(names))]]["shape"] = shapes[rng.integers(len(shapes))]
    elif what == 3:
        ends = own[names[rng.integers(len(names))]]["data_offsets"]
        ends[rng.integers(2)] = [0, 1, len(body), len(body) + 8, 2**63, 2**64 - 1, -8][rng.integers(7)]
    elif what == 4:
        own["more"] = {"dtype": "F64", "shape": [0, 2**40], "data_offsets": [len(body)] * 2}
    text = json.dumps(own)
    if what == 5 and names:
        one = names[rng.integers(len(names))]
        odd = [f'"{one}": {json.dumps(own[one])}, ', '"a": NaN, ', '"a": ' + "[" * 10_000, "\ufeff", '"\\ud800": 1, ']
        text = "{" + odd[rng.integers(len(odd))] + text[1:]
    head = text.encode("utf-8", "surrogatepass")
    return mended(len(head).to_bytes(8, "little") + head + body)


def record(rng: np.random.Generator, data: bytes) -> bytes:
    """Change bits and words of a record, whose checksum is right again."""
    entries, arrays = opened(data)
    name = "record" if "record" in arrays else "records"
    if name not in arrays:
        return data
    ends = [0, *arrays["ends"].tolist()] if "ends" in arrays else [0, len(arrays[name])]
    one = int(rng.integers(len(ends) - 1))
    body, own = bytearray(arrays[name].tobytes()), slice(ends[one], ends[one + 1])
    part = body[own]
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(12, 120 if rng.integers(2) and len(part) > 120 else len(part)))
        if rng.integers(3) == 0:
            part[at] ^= 1 << int(rng.integers(8))
        else:
            word = rng.choice([0, 1, -1, 5, 2**31, 2**40, 2**62, -(2**63)])
            odd = np.int64(word) if rng.integers(2) else np.float64(rng.choice([0.0, -1.0, 1e308, 1e-320, np.nan]))
            part[at // 8 * 8 : at // 8 * 8 + 8] = odd.tobytes()[: len(part) - at // 8 * 8]
    body[own] = with_checksum(bytes(part))
    return written(entries, arrays | {name: np.frombuffer(bytes(body), np.uint8)})


def contents(rng: np.random.Generator, data: bytes) -> bytes:
    """Change what a model has learned: values, types, shapes and names, with a schema that says so."""
    if opened(data)[0].get("kind") != "model":
        return record(rng, data)

    def change(_: Any, found: Any) -> None:
        if found is None:
            return
        name = sorted(found)[rng.integers(len(found))]
        what, value = rng.integers(6), found[name]
        if what == 0:
            del found[name]
        elif what == 1:
            found[str(rng.choice(["more", "learned.more", "learned.", "features"]))] = value
        elif not isinstance(value, np.ndarray):
            found[name] = [0, 1, -1, 2**62, 1.5, -1.0, 1e308, "x", ""][rng.integers(9)]
        elif what == 2:
            found[name] = value.astype(str(rng.choice(["f8", "f4", "i8", "u1", "?"])))
        elif what == 3:
            found[name] = value.reshape([(-1,), (1, -1), (-1, 1)][rng.integers(3)])
        elif what == 4:
            found[name] = value[: rng.integers(len(value) + 1)] if value.ndim else value
        elif value.size:
            value = found[name] = value.copy()
            value.reshape(-1)[rng.integers(value.size)] = np.float64(rng.choice([0, -1, 1e300, np.nan])).astype(
                value.dtype
            )

    return forged_file(data, change)


MUTATIONS = (raw, header, header, array, layout, record, record, contents, contents)


# Opening them


def fate(data: bytes) -> str:
    """Say what comes of a file: "refused", "predicts", "raises" a ValueError later, or what went wrong."""
    try:
        kind, opened = "model", ogp.from_bytes(data)
    except ogp.ModelFileError as error:
        if "not a model" not in str(error):
            return "needs too much memory" if "memory" in str(error) else "refused"
        try:
            kind, opened = "fleet", ogp.Fleet.from_bytes(data)
        except ogp.ModelFileError as error:
            return "needs too much memory" if "memory" in str(error) else "refused"
    try:
        mean, std = predicted(opened) if kind == "model" else predicted_by_all(opened)
    except ValueError:
        return "raises"
    return "predicts" if np.isfinite(mean).all() and np.isfinite(std).all() else "predicts what is not finite"


def predicted(model: Any) -> Any:
    """Predict with a model; then let it learn, which may fail, but not crash."""
    width = model.n_features_in_ if model.__sklearn_is_fitted__() else 2
    X, y = stream(3, features=max(1, width), seed=1)
    X = X[:, :width]  # a forged model may have none
    predicted = model.predict(X, return_std=True)
    with contextlib.suppress(ValueError, ArithmeticError):
        model.partial_fit(X, y if predicted[0].ndim == 1 else np.stack([y] * predicted[0].shape[1], 1))
    return predicted


def predicted_by_all(fleet: Any) -> Any:
    if len(fleet) == 0:
        trace = fleet.run([1, 2], *stream(2, seed=1))
        return trace.mean, trace.std
    first = fleet[next(iter(fleet))]
    X, _ = stream(len(fleet), features=max(1, first.n_features_in_), seed=1)
    return fleet.predict(list(fleet), X[:, : first.n_features_in_], return_std=True)


def attack(seed: int, count: int) -> collections.Counter[str]:
    """Open so many forged files and count what came of them; anything but an answer ends this process."""
    rng, good = np.random.default_rng(seed), originals()
    fates: collections.Counter[str] = collections.Counter()
    for i in range(count):
        change = MUTATIONS[rng.integers(len(MUTATIONS))]
        with np.errstate(all="ignore"):
            data = change(rng, good[rng.integers(len(good))])
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # which ends the process
            try:
                what = fate(data)
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                what = f"{type(error).__name__}: {error}"[:200] + f" ({where.name} in {Path(where.filename).name})"
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        fates["files"] += 1
        fates[what] += 1
        if what not in ("refused", "predicts", "raises"):
            print(f"file {i} of seed {seed}, by {change.__name__}: {what}", file=sys.stderr, flush=True)
    return fates


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    attack(0, 100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = attack(int(sys.argv[1]), int(sys.argv[2]))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(dict(found) | {"MB of growth": round((after - before) / 1024)}))
