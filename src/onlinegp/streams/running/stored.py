"""What a checkpoint or a saved model says of its stream is checked here, before anybody believes it.

A file may come from anywhere, and its checksum can be made right. Whatever does not fit is refused by name.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from onlinegp.change_detection import KINDS
from onlinegp.checks import LARGEST
from onlinegp.columns.dates import checked_format
from onlinegp.columns.plan import CHOICES, Plan
from onlinegp.files.container import ModelFileError
from onlinegp.models.base import OnlineRegressor
from onlinegp.streams.running.flag_commands import WAITING
from onlinegp.streams.running.flags import KEPT, MOST, REASONS
from onlinegp.streams.running.member_weights import MEMBERS, POINTS
from onlinegp.streams.running.plausible import IN_A_ROW
from onlinegp.streams.running.prepare import FARTHEST
from onlinegp.streams.running.score import BINS, BUCKETS, HIGH, LEVELS, LOW, SUMS, TAIL, TAILED

SAVED = ("columns", "level", "settings")
PLACE = ("position", "output", "rejects", "rows", "score", "curves", "weights", "flags", "surprises", "commands")
MADE_BY = {"number": ("number",), "category": ("onehot", "ordinal"), "date": ("calendar",)}  # parts, by kinds
COUNT = 1 << 62  # more than anything that is counted


def checked(stream: Any, model: OnlineRegressor) -> dict[str, Any]:
    """Return the stream's entry of a model file, or raise a ModelFileError; it is empty for a plain model file.

    A saved model has columns, level and settings; a checkpoint has its place besides.
    """
    _need(isinstance(stream, dict), "stream", "an object")
    if not stream:
        return {}
    _only(stream, (*SAVED, *(PLACE if "position" in stream else ())), "stream")
    inputs, features = _columns(_object(stream, "columns")), getattr(model, "n_features_in_", None)
    _need(features in (None, inputs), "columns", f"as many as the model's {features} inputs")
    _level(stream)
    _object(stream, "settings")
    if "position" in stream:
        _position(_object(stream, "position"))
        for name in ("count", "length"):
            _whole(_object(stream, "rejects"), name)
        _whole(stream, "output")
        _whole(stream, "rows")
        _score(_object(stream, "score"))
        if stream["curves"] is not None:
            _curves(_object(stream, "curves"))
        if stream["weights"] is not None:
            _weights(_object(stream, "weights"))
        if stream["flags"] is not None:
            _flags(_object(stream, "flags"))
        for row in _list(stream, "surprises") if stream["surprises"] is not None else []:
            _surprise(row)
        _need(len(stream["surprises"] or ()) <= MOST, "surprises", f"at most {MOST} rows")
        rows = _list(stream, "commands")
        _need(len(rows) <= WAITING and all(isinstance(row, str) for row in rows), "commands", "a list of rows")
    return stream


def _position(position: dict[str, Any]) -> None:
    place = ("row", "checksum") if "row" in position else ("offset", "line", "checksum")
    _only(position, (*place, *(["behind"] if "behind" in position else [])), "position")
    for name in position:
        _whole(position, name)


def _columns(columns: dict[str, Any]) -> int:
    """Check which columns are what, and return how many inputs they make."""
    codes = ["na_values"] if "na_values" in columns else []  # later than the first files
    _only(columns, ("target", "features", "keys", "kinds", "missing", "date_format", "learned", *codes), "columns")
    _need(all(isinstance(code, str) for name in codes for code in _list(columns, name)), "na_values", "texts")
    target = [] if columns["target"] is None else [columns["target"]]
    for names in (_list(columns, "features") + target, _list(columns, "keys")):
        _need(all(isinstance(name, str) for name in names), "columns", "made of names")
        _need(len(set(names)) == len(names), "columns", "without a name twice")
    features, kinds, learned = columns["features"], _list(columns, "kinds"), columns["learned"]
    _need(all(isinstance(kind, str) and kind in MADE_BY for kind in kinds), "kinds", f"made of {', '.join(MADE_BY)}")
    _need(len(kinds) in (0, len(features)), "kinds", "one for each feature, or none")
    _need(columns["missing"] in CHOICES["missing"], "missing", f"one of {', '.join(CHOICES['missing'])}")
    plain = not kinds and columns["missing"] == "stop"
    _need((learned is None) == plain, "learned", "there for columns that are not plain numbers, and only for those")
    try:
        checked_format(columns["date_format"])
        plan = None if plain else Plan.load(learned)
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"the stream's entry is not valid: {error}.") from None
    if plan is None:
        return len(features)
    _need([column.column for column in plan.columns] == features, "learned", "about the features, in their order")
    for column, kind in zip(plan.columns, kinds or ["number"] * len(features), strict=True):
        _need(column.part.kind in MADE_BY[kind], "learned", f"of a kind that a {kind} can become")
        _need((column.means is None) == (columns["missing"] == "stop"), "means", "there if values may be missing")
    return len(plan.names)


def _score(score: dict[str, Any]) -> None:
    _level(score)
    _only(score, ("level", "n", "covered", "squares", "density", "y_mean", "y_squares", "within", "pit"), "score")
    for name in ("n", "covered"):
        _whole(score, name)
    for name in ("squares", "density", "y_mean", "y_squares"):
        _number(score, name, np.inf)
    for name, length in (("within", len(LEVELS)), ("pit", BINS)):
        counts = _list(score, name)
        _need(len(counts) == length, name, f"of {length} numbers")
        for i in range(length):
            _whole({name: counts[i]}, name)


def _curves(curves: dict[str, Any]) -> None:
    _only(curves, ("width", "rows", "tuning", "last", "buckets", "tail"), "curves")
    width, rows = _whole(curves, "width", 1), _whole(curves, "rows")
    _whole(curves, "tuning", 0, rows)
    _need(1 <= len(_numbers_or_null(curves, "last")) <= FARTHEST, "last", f"from 1 to {FARTHEST} numbers")
    for name, columns, most in (("buckets", (*SUMS, *LOW, *HIGH), 2 * BUCKETS), ("tail", TAILED, TAIL)):
        table = _object(curves, name)
        _only(table, columns, name)
        lengths = {len(_numbers_or_null(table, column)) for column in columns}
        _need(len(lengths) == 1 and max(lengths) <= most, name, f"of at most {most} points each")
    _need(len(curves["buckets"]["rows"]) == -(-rows // width), "buckets", "as many as rows and width make")


def _flags(flags: dict[str, Any]) -> None:
    _only(flags, ("rate", "counts", "sums", *(["range"] if "range" in flags else [])), "flags")
    if "range" in flags:  # later than the first files
        _range(_object(flags, "range"))
    _need(0.0 < _number(flags, "rate") <= 1.0, "rate", "between 0 and 1")
    counts, sums = _object(flags, "counts"), _list(flags, "sums")
    _only(counts, REASONS if "range" in flags else REASONS[:-1], "counts")
    for name in counts:
        _whole(counts, name)
    _need(len(sums) == len(KINDS), "sums", f"of {len(KINDS)} numbers")
    for value in sums:
        _need(_number({"sums": value}, "sums") >= 0.0, "sums", "at least zero")


def _range(found: dict[str, Any]) -> None:
    _only(found, ("n", "count", "low", "high", "odd"), "range")
    for name in ("n", "count"):
        _whole(found, name)
    _need(_number(found, "low") <= _number(found, "high"), "low", "at most high")
    odd = _list(found, "odd")
    _need(len(odd) <= IN_A_ROW + 1, "odd", f"at most {IN_A_ROW + 1} numbers")
    for value in odd:
        _number({"odd": value}, "odd")


def _weights(weights: dict[str, Any]) -> None:
    _only(weights, ("members", "stride", "places", "counts", "sums"), "weights")
    members, places, counts, sums = (_list(weights, name) for name in ("members", "places", "counts", "sums"))
    stride = _whole(weights, "stride", 1)
    _need(len(members) <= MEMBERS and all(isinstance(name, str) for name in members), "members", "a list of names")
    _need(
        len(places) == len(counts) == len(sums) < 2 * POINTS, "places", f"fewer than {2 * POINTS}, each with its sums"
    )
    for place, count, row in zip(places, counts, sums, strict=True):
        _whole({"places": place}, "places")
        _whole({"counts": count}, "counts", 1, stride)
        _need(isinstance(row, list) and len(row) == len(members), "sums", "one for each member")
        for value in row:
            _need(0.0 <= _number({"sums": value}, "sums") <= count * (1.0 + 1e-9), "sums", "from 0 to the count")
    _need(all(a < b for a, b in pairwise(places)), "places", "in increasing order")


def _surprise(row: Any) -> None:
    _need(isinstance(row, dict), "surprises", "a list of rows")
    _only(row, ("row", "keys", *KEPT), "surprises")
    _whole(row, "row", 1)
    _need(all(text is None or isinstance(text, str) for text in _object(row, "keys").values()), "keys", "texts")
    for name in KEPT:
        _number(row, name, np.inf)


# One value, by its name


def _need(good: bool, name: str, what: str) -> None:
    if not good:
        raise ModelFileError(f"the stream's entry is not valid: {name} must be {what}.")


def _object(of: dict[str, Any], name: str) -> dict[str, Any]:
    value = of.get(name)
    _need(isinstance(value, dict), name, "an object")
    return value  # type: ignore[return-value]


def _only(of: dict[str, Any], names: tuple[str, ...], name: str) -> None:
    _need(set(of) == set(names), name, f"made of {', '.join(names)}")


def _list(of: dict[str, Any], name: str) -> list[Any]:
    value = of.get(name)
    _need(isinstance(value, list), name, "a list")
    return value  # type: ignore[return-value]


def _whole(of: dict[str, Any], name: str, least: int = 0, most: int = COUNT) -> int:
    value = of.get(name)
    good = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    _need(good, name, f"a whole number from {least}" + (f" to {most}" if most < COUNT else ""))
    return value  # type: ignore[return-value]


def _number(of: dict[str, Any], name: str, most: float = LARGEST) -> float:
    value = of.get(name)
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < most
    _need(good, name, "a finite number" + (f" below {most:g}" if most < np.inf else ""))
    return value  # type: ignore[return-value]


def _numbers_or_null(of: dict[str, Any], name: str) -> list[float]:
    return [0.0 if value is None else _number({name: value}, name, np.inf) for value in _list(of, name)]


def _level(of: dict[str, Any]) -> None:
    _need(0.0 < _number(of, "level") < 1.0, "level", "between 0 and 1")
