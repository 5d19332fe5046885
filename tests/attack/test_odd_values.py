"""Numbers in odd clothes: each is read as what it is, or refused by a message that names the argument and a remedy."""

import array
import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine import available

ENGINES = [
    "python",
    pytest.param("native", marks=pytest.mark.skipif(not available(), reason="the compiled engine was not built")),
]


class Half(float):
    """A float that converts to another number than the one it was made of."""

    def __float__(self) -> float:
        return 0.5


GOOD = {
    "int": [1, 2],
    "int as large as 10**149": [10**149, 1],
    "Fraction": [Fraction(1, 3), Fraction(1, 7)],
    "float subclass": [Half(7), 2.0],
    "bool": [True, False],
    "object array": np.array([1, 2.5], dtype=object),
    "memoryview": memoryview(array.array("d", [1, 2])),
    "memoryview of int": memoryview(array.array("i", [1, 2])),
    "array": array.array("f", [1, 2]),
    "range": range(2),
    "0-d arrays": [np.array(1.0), np.array(2.0)],
    "nothing masked": np.ma.array([1.0, 2.0]),
    "an all False mask": np.ma.array([1.0, 2.0], mask=[False, False]),
    "long double": np.array([1, 2], dtype=np.longdouble),
    "half precision": np.array([1, 2], dtype=np.float16),
    "big endian": np.array([1, 2], dtype=">f8"),
    "unsigned": np.array([2**64 - 1, 1], dtype=np.uint64),
}
BAD = {
    "10**400": ([10**400, 0.0], r"more than 300 digits at \[(0, )?0\].*rescale"),
    "-10**5000": ([0.0, -(10**5000)], r"more than 300 digits at \[(0, )?1\].*rescale"),
    "Fraction of 400 digits": ([Fraction(10**400), 0], "more than 300 digits"),
    "long double of 1e400": (np.array([np.longdouble("1e400"), 2]), "infinity.*rescale"),
    "Decimal": ([Decimal("0.5"), Decimal(1)], "must hold numbers, got Decimal.*Convert"),
    "None": ([None, 1.0], "must hold numbers, got None.*Convert"),
    "text": (["a", "b"], "must hold numbers, got.*'a'.*Convert"),
    "bytes": ([b"1", b"2"], "must hold numbers, got.*b'1'.*Convert"),
    "dates": (np.array(["2020", "2021"], dtype="M8[s]"), "times of dtype datetime64.*timedelta64"),
    "durations": (np.array([1, 2], dtype="m8[s]"), "times of dtype timedelta64.*timedelta64"),
    "datetime": ([datetime.datetime(2020, 1, 1)] * 2, "must hold numbers.*Convert"),
    "structured": (np.array([(1.0,), (2.0,)], dtype=[("a", "f8")]), "must hold numbers.*Convert"),
    "masked": (np.ma.array([1.0, 2.0], mask=[0, 1]), r"masked value at \[1\].*filled"),
    "a masked constant": ([np.ma.masked, 1.0], "masked value.*filled|NaN"),
    "ragged": ([1, [2]], "rectangular"),
    "complex": ([1j, 1.0], "Complex"),
}


def same_row(values) -> np.ndarray:
    return np.array([float(value) for value in values])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", GOOD)
def test_read_as_what_they_are(kind, engine):
    values = GOOD[kind]
    for learn in (lambda model: model.learn_one(values, 1.0), lambda model: model.partial_fit([values], [1.0])):
        model = ogp.KLMS(engine=engine).fit(np.zeros((1, 2)), [0.0])
        learn(model)
        np.testing.assert_array_equal(model.centers_[-1], same_row(values))
        assert model.predict_one(values) == model.predict([values])[0]


@pytest.mark.filterwarnings("ignore:Warning. converting a masked element")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", BAD)
def test_refused_by_name_and_with_a_remedy(kind, engine):
    values, message = BAD[kind]
    model = ogp.KLMS(engine=engine).fit(np.zeros((1, 2)), [0.0])
    for call, argument in {
        lambda: model.learn_one(values, 1.0): "x",
        lambda: model.predict_one(values): "x",
        lambda: model.partial_fit([values], [1.0]): "X",
        lambda: model.predict([values]): "X",
        lambda: model.partial_fit(np.zeros((2, 2)), values): "y",
    }.items():
        with pytest.raises((ValueError, TypeError), match=message) as caught:
            call()
        assert f"{argument} " in str(caught.value) or f"{argument}[" in str(caught.value)
    assert model.n_samples_seen_ == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_target_that_no_double_holds(engine):
    model = ogp.KLMS(engine=engine).fit(np.zeros((1, 2)), [0.0])
    for target in (10**400, np.ma.masked, np.array(1, dtype="m8[s]")):
        with pytest.raises((ValueError, TypeError), match=r"rescale|masked|times"):
            model.learn_one([0.0, 1.0], target)
    assert model.n_samples_seen_ == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_masked_tables(engine):
    table = np.ma.array(np.ones((3, 2)), mask=[[0, 0], [0, 1], [0, 0]])
    model = ogp.KLMS(engine=engine)
    with pytest.raises(ValueError, match=r"X has a masked value at \[1, 1\].*X.filled\(value\)"):
        model.fit(table, np.ones(3))
    with pytest.raises(ValueError, match=r"y has a masked value at \[2\]"):
        model.fit(np.ones((3, 2)), np.ma.array([1.0, 2.0, 3.0], mask=[0, 0, 1]))
    model.fit(table.filled(0.5), np.ma.array([1.0, 2.0, 3.0]))
    assert model.n_samples_seen_ == 3
    with pytest.raises(ValueError, match="masked"):
        ogp.Fleet(ogp.KLMS(engine=engine)).learn(["a"] * 3, table, np.ones(3))
