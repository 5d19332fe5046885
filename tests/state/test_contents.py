"""Learners that declare their fields: what is dumped, what is refused, and that loading is all or nothing."""

from __future__ import annotations

import numpy as np
import pytest

from onlinegp.state import (
    WithFields,
    array,
    data,
    flags,
    integer,
    integers,
    learner,
    number,
    points,
    text,
    triangle,
)


class Inner(WithFields):
    fields = {"total": array("outputs", positive=True), "rows": integers("n", least=0, attribute="_rows")}
    lengths = {"n": "longest"}

    def __init__(self, outputs, longest=None):
        self.outputs, self.longest = outputs, longest
        self.total, self._rows = np.ones(outputs), np.arange(3)


class Outer(WithFields):
    fields = {
        "size": integer(most="budget"),
        "share": number(most=1.0),
        "C": points("size"),
        "L": triangle("size"),
        "known": flags("outputs"),
        "about": text(),
        "bytes": data("length"),
        "scale": array("outputs", attribute="held.scale"),
        "inner": learner(attribute="child"),
        "flat": learner(prefix=""),
    }
    lengths = {"length": None}

    def __init__(self, budget=4, child=None):
        self.features, self.outputs, self.budget, self.size = 2, 3, budget, 2
        self.share, self.C, self.L = 0.5, np.arange(4.0).reshape(2, 2), np.ones(3)
        self.known, self.about, self.bytes = np.array([True, False, True]), "x", np.zeros(5, np.uint8)
        self.held = Held()
        self.child, self.flat, self.rebuilt = child or Inner(3), Inner(1, longest=3), 0

    def check(self, values):
        if values["share"] > values["size"]:
            raise ValueError(f"share must be at most the size, {values['size']}, got {values['share']}.")

    def rebuild(self):
        self.rebuilt += 1


class Held:
    scale = np.zeros(3)


class Own:
    """A learner with dump and load of its own, without fields."""

    def __init__(self):
        self.value = 1.0

    def dump(self):
        return {"value": self.value, "more.value": 2.0}

    dump_compact = dump

    def load(self, contents):
        if contents["value"] < 0.0:
            raise ValueError("value must not be negative.")
        self.value = contents["value"]


def test_contents_hold_the_fields_in_their_order_and_those_inside_by_prefix():
    names = "size share C L known about bytes scale inner.total inner.rows total rows"
    assert " ".join(Outer().dump()) == names == " ".join(Outer().dump_compact())


def test_what_was_dumped_is_loaded_and_owned():
    one, two = Outer(), Outer()
    one.size, one.C, one.L, one.held.scale = 3, np.eye(3)[:, :2], np.arange(6.0), np.full(3, 7.0)
    one.child.total[:], one.flat._rows = 5.0, np.arange(2)
    contents = one.dump()
    for value in contents.values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    two.load(contents)
    assert two.rebuilt == 1
    assert repr(two.dump()) == repr(contents)
    two.C[:], two.child.total[:] = 9.0, 9.0  # nothing is shared, with the contents or with the other
    assert one.C.max() == 1.0
    assert one.child.total[0] == contents["inner.total"][0] == 5.0


REFUSED = {
    "size": [
        (-1, "size must be at least 0, got -1"),
        (5, "size must be at most the budget, 4, got 5"),
        (1, "C must be float64 of"),
    ],
    "share": [
        (2.0, "at most 1.0"),
        (np.nan, "share must be a finite number"),
        ("x", "finite number"),
        (10**400, "finite"),
        (True, "True"),
    ],
    "C": [(np.zeros((2, 3)), r"C must be float64 of shape \(2, 2\), got float64 of shape \(2, 3\)")],
    "L": [(np.zeros(4), r"L must be float64 of shape \(3,\)"), (np.full(3, np.inf), "L holds a value that is not")],
    "known": [(np.zeros(3), r"known must be bool of shape \(3,\), got float64")],
    "about": [(3, "about must be a text, got 3")],
    "bytes": [(b"", "bytes must be uint8 of shape .*, got bytes"), (np.zeros((1, 1), np.uint8), "bytes")],
    "inner.total": [(np.zeros(3), r"inner.total must be positive, got 0.0"), (np.ones(2), "inner.total must be float")],
    "inner.rows": [(np.array([0, -1]), "inner.rows must be at least 0, got -1"), (np.zeros(2), "int64")],
    "rows": [(np.arange(4), "rows must have a length of at most 3, got 4")],
    "other": [(1, "the state has the unknown entry 'other'. It should have: total, rows")],  # the one without a prefix
    "inner.other": [(1, "the state has the unknown entry 'inner.other'")],
}


@pytest.mark.parametrize(("name", "value", "message"), [(n, *case) for n, cases in REFUSED.items() for case in cases])
def test_what_does_not_fit_is_refused_by_name_and_nothing_changes(name, value, message):
    outer = Outer()
    before = repr(outer.dump())
    spoiled = outer.dump() | {"scale": np.ones(3), "inner.total": np.full(3, 2.0)} | {name: value}
    with pytest.raises(ValueError, match=message):
        outer.load(spoiled)
    assert repr(outer.dump()) == before
    assert outer.rebuilt == 0


@pytest.mark.parametrize("name", list(Outer().dump()))
def test_a_missing_field_is_refused_by_name(name):
    contents = Outer().dump()
    del contents[name]
    with pytest.raises(ValueError, match=f"lacks '{name}'"):
        Outer().load(contents)


def test_relations_between_fields_are_checked_before_anything_changes():
    outer = Outer()
    contents = outer.dump() | {"size": 0, "C": np.zeros((0, 2)), "L": np.zeros(0)}
    with pytest.raises(ValueError, match=r"share must be at most the size, 0, got 0\.5"):
        outer.load(contents)
    assert outer.size == 2


def test_a_learner_without_fields_takes_part_with_its_own_dump_and_load():
    one, two = Outer(child=Own()), Outer(child=Own())
    one.child.value = 3.0
    contents = one.dump()
    assert contents["inner.more.value"] == 2.0
    two.load(contents)
    assert two.child.value == 3.0
    with pytest.raises(ValueError, match="value must not be negative"):
        two.load(contents | {"inner.value": -1.0, "share": 0.25})
    assert two.share == 0.5


def test_a_class_that_declares_nothing_says_what_to_do():
    with pytest.raises(TypeError, match="WithFields must declare its fields or define its own dump and load"):
        WithFields().dump()
