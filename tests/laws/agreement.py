"""What a model predicts on its way through rows, and how it is compared: with another's, and one row with a block."""

from __future__ import annotations

from typing import Any

import numpy as np

import onlinegp as ogp
from transactions import assert_equal, contents

Observed = dict[str, np.ndarray]


def observed(model: Any, X: np.ndarray, y: np.ndarray, *, intervals: bool = True) -> Observed:
    """Return sizes, means, standard deviations and log densities of a run, and the ends of the 95% intervals."""
    trace = ogp.run(model, X, y)
    parts = {"size": trace.size, "mean": trace.mean, "std": trace.std, "log_density": trace.log_density}
    return parts | (dict(zip(("lower", "upper"), trace.interval(0.95), strict=True)) if intervals else {})


def deviation(one: Observed, two: Observed) -> float:
    """Return the largest difference, relative to the largest value of its kind; infinity if decisions differ."""
    if not np.array_equal(one["size"], two["size"]):
        return np.inf
    return max(float(np.abs(two[name] - one[name]).max() / np.abs(one[name]).max()) for name in one if name != "size")


def assert_close(found: Observed, expected: Observed, tolerance: float) -> None:
    """Decisions are the same, which the sizes show, and numbers agree, relative to the largest of their kind."""
    np.testing.assert_array_equal(found["size"], expected["size"], err_msg="size")
    for name in expected.keys() - {"size"}:
        scale = np.abs(expected[name]).max()
        np.testing.assert_allclose(found[name], expected[name], atol=tolerance * scale, rtol=0.0, err_msg=name)


def assert_one_by_one(block: Any, model: Any, X: np.ndarray, y: np.ndarray) -> None:
    """Predicted and learned one by one, rows are predicted and learned as in a block, to the last bit."""
    expected, rows = observed(block, X, y), []
    some = np.arange(20, len(X), 20)  # rows of which densities and intervals are compared, too
    model.partial_fit(X[:1], y[:1])  # before it, the number of outputs is not known
    for i in range(1, len(X)):
        if i in some:
            predicted = model.predict_distribution(X[i : i + 1])
            np.testing.assert_array_equal(predicted.log_density(y[i : i + 1])[0], expected["log_density"][i])
            # rows of several kinds are joined, with the components of other rows between theirs: another order of a
            # sum, with the rounding of the mean and of the spread, also where an end of the interval is close to zero
            ends = [expected["lower"][[i]], expected["upper"][[i]]]
            np.testing.assert_allclose(predicted.interval(0.95), ends, rtol=0.0, atol=1e-14 * np.abs(ends).max())
            # one row has a path of its own
            np.testing.assert_array_equal(model.predict_interval(X[i : i + 1]), predicted.interval(0.95))
            alone = model.predict(X[i : i + 1], return_std=True)
            np.testing.assert_array_equal(alone, (predicted.mean, predicted.std))
        rows.append(model.predict_one(X[i], return_std=True))
        model.learn_one(X[i], y[i])
        assert model.size_ == expected["size"][i]
    for found, name in zip(zip(*rows, strict=True), ("mean", "std"), strict=True):
        np.testing.assert_array_equal(found, expected[name][1:], err_msg=name)
    assert_equal(contents(model), contents(block))
