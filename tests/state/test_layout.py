"""What is stored of each model: names, types and shapes. A change of it makes old files useless."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onlinegp as ogp
from models import EVERY, stream

RECORDED = dict(
    line.split(": ", 1)
    for line in (Path(__file__).parent.parent / "fixtures" / "contents.txt").read_text().splitlines()
    if not line.startswith("#")
)


def layout(contents):
    """Return names, types and shapes in one line; the length of bytes, which hold texts of numbers, is left out."""
    entries = []
    for name, value in contents.items():
        if isinstance(value, np.ndarray):
            shape = "" if value.dtype == np.uint8 else "x".join(map(str, value.shape))
            entries.append(f"{name} {value.dtype.str[1:]}[{shape}]")
        else:
            entries.append(f"{name} {type(value).__name__}")
    return ", ".join(sorted(entries))  # the engines have orders of their own


def learned(name):
    return EVERY[name].unfitted().fit(*stream(120)).learner


@pytest.mark.parametrize("name", EVERY)
def test_contents_are_laid_out_as_recorded(name):
    learner = learned(name)
    assert layout(learner.dump()) == RECORDED[name]
    assert layout(learner.dump_compact()) == RECORDED.get(f"{name} compact", RECORDED[name])


@pytest.mark.parametrize("name", [name for name in EVERY if "engine" in EVERY[name].get_params(deep=False)])
def test_engines_store_the_same(name):
    readable = EVERY[name].unfitted().set_params(engine="python").fit(*stream(120)).learner
    assert layout(readable.dump()) == RECORDED[name]
    assert layout(readable.dump_compact()) == RECORDED.get(f"{name} compact", RECORDED[name])


def spoils(value):
    """Yield values that fit nowhere: no array or another number of dimensions, and one that is not finite."""
    yield value[..., None] if isinstance(value, np.ndarray) else None
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
        bad = value.copy()
        bad.reshape(-1)[-1] = np.nan
        yield bad


@pytest.mark.parametrize("name", EVERY)
def test_loading_is_all_or_nothing(name):
    """Each entry in turn is spoiled, wherever it is in a model made of models: nothing of the others is taken."""
    X, y = stream(120)
    check_all_or_nothing(learned(name), EVERY[name].unfitted().fit(X[:60], y[:60]).learner)


def test_loading_is_all_or_nothing_where_a_readable_learner_holds_compiled_ones():
    X, y = stream(120)
    members = [ogp.Calibrated(ogp.KRLST(budget=9)), ogp.Calibrated(ogp.KLMS()), ogp.KLMS(engine="python")]
    one, other = (ogp.Mixture(members).fit(X[:n], y[:n]).learner for n in (120, 60))
    check_all_or_nothing(one, other)


def check_all_or_nothing(learner, other):
    before, contents = other.dump(), learner.dump()
    for entry, spoiled in [(entry, bad) for entry, value in contents.items() for bad in spoils(value)]:
        with pytest.raises(ValueError, match=f"{entry} (must be|holds)"):
            other.load(contents | {entry: spoiled})
        after = other.dump()
        assert list(after) == list(before)
        for one in before:
            np.testing.assert_array_equal(after[one], before[one], err_msg=f"{entry} spoiled, {one} changed")
    other.load(contents)
    after = other.dump()
    for one in contents:
        np.testing.assert_array_equal(after[one], contents[one])
