"""Formulas for multiplications of the linear filters, against plain loops that learn what the models learn."""

from __future__ import annotations

import math

import numpy as np
import pytest

import onlinegp as ogp
from counting import Number, added, dot, matrix, numbers, root, spread
from models import stream
from onlinegp.engine.compiled import readable

X, Y = stream(30)


def prob_lms(learner, x, y):
    rule, w, v = learner.rule, numbers(learner.w[:, 0]), Number(learner.v[0])
    mean = dot(x, w)
    if rule.keep < 1.0:
        mean, w, v = mean * rule.keep, [one * rule.keep for one in w], v * rule.keep**2
    v = v + rule.drift
    u = v * dot(x, x)
    s = u + rule.floor
    w = added(w, v / s * (y - mean), x)
    return mean, math.sqrt(s), w, [v * (u * (1.0 - rule.share) + rule.floor) / s]


def rotated(row, other, i):
    """Rotate the entry i of another row into this one."""
    h = root(row[i] * row[i] + other[i] * other[i])
    c, s = row[i] / h, other[i] / h
    rest = [(c * a + s * b, c * b - s * a) for a, b in zip(row[i + 1 :], other[i + 1 :], strict=True)]
    row[i:], other[i:] = [h, *(a for a, _ in rest)], [Number(0.0), *(b for _, b in rest)]


def kalman(learner, x, y):
    w, U, m = numbers(learner.w[:, 0]), matrix(learner.U), len(x)
    if learner.drift:
        for i in range(m):
            spare = numbers(math.sqrt(learner.drift) * np.eye(m)[i])
            for k in range(i, m):
                rotated(U[k], spare, k)
    mean, f = dot(x, w), [dot(U[i][i:], x[i:]) for i in range(m)]
    size, t = Number(math.sqrt(learner.noise)), numbers(np.zeros(m))
    for i in reversed(range(m)):
        h = root(size * size + f[i] * f[i])
        c, s = size / h, f[i] / h
        for j in range(i, m):
            t[j], U[i][j] = c * t[j] + s * U[i][j], c * U[i][j] - s * t[j]
        size = h
    w = added(w, y - mean, [one / size for one in t])
    return mean, math.sqrt(size * size), w, np.array(U, dtype=float)


@pytest.mark.parametrize(
    ("model", "loop"),
    [
        (ogp.kafbox.ProbLMS(noise=0.1, drift=1e-3), prob_lms),
        (ogp.kafbox.ProbLMS(noise=0.1, drift=1e-3, forgetting=0.99, intercept=False), prob_lms),
        (ogp.Kalman(noise=0.1, drift=1e-3), kalman),
        (ogp.Kalman(noise=0.1, drift=0.0, intercept=False), kalman),
    ],
)
def test_formulas_count_a_loop_that_learns_the_same(model, loop):
    model = model.unfitted().set_params(engine="python").fit(X, Y)
    x, constant = [0.3, -0.8], [1.0] if model.intercept else []
    mean, std = model.predict_one(x, return_std=True)
    Number.count = 0
    ours, spread_of_ours, w, belief = loop(model.learner, numbers([*x, *constant]), Number(0.7))
    assert model.multiplications(0, 2) == Number.count
    np.testing.assert_allclose([ours, spread_of_ours], [mean, std], rtol=1e-9)
    learner = model.learn_one(x, 0.7).learner
    np.testing.assert_allclose(learner.w[:, 0], w, rtol=1e-9)
    np.testing.assert_allclose(learner.U if isinstance(model, ogp.Kalman) else learner.v, belief, rtol=1e-9)


def test_the_value_before_has_only_the_scale_of_its_changes():
    model = ogp.Persistence().fit(X, Y)
    Number.count = 0
    std = spread(readable(model.learner).changes, Number(0.7) - Y[-1])
    assert model.multiplications(0, 2) == Number.count
    np.testing.assert_allclose(model.predict_one(X[0], return_std=True), [Y[-1], std], rtol=1e-12)
