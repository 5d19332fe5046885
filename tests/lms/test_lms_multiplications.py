"""Formulas for multiplications of KLMS and its kin, against plain loops that learn what the models learn."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import onlinegp as ogp
from counting import Number, added, dot, kernel_row, largest_coherence, numbers, root, spread
from models import stream
from onlinegp.kernels import RBF

NEAR, FAR = [0.01, -0.02], [9.0, 9.0]  # of inputs that were learned, and of none


def parts(f):
    """Centers (m, d), and weights and further numbers of an expansion, (m,) each."""
    return f.centers, numbers(f.weights[:, 0]), {name: numbers(f.numbers(name)) for name in f.also}


def normalized(learner, x, y):
    """FBKLMS and MKNLMS, for kernels of length scale 1."""
    fs = learner.fs if hasattr(learner, "fs") else [learner.f]
    rows = [kernel_row(f.centers, x) for f in fs]
    mean = sum((dot(k, parts(f)[1]) for f, k in zip(fs, rows, strict=True)), Number(0.0))
    k2, own = sum(dot(k, k) for k in rows), sum(Number(1.0) * 1.0 for _ in fs)
    variance = (learner.epsilon + k2 + own) / learner.step
    coherent = [largest_coherence(k, parts(f)[2]["kcc"]) for f, k in zip(fs, rows, strict=True)]
    new = max(coherent) <= learner.coherence
    amount = learner.step / (learner.epsilon + k2 + (sum(Number(1.0) * 1.0 for _ in fs) if new else 0.0)) * (y - mean)
    weights = [added(parts(f)[1], amount, k) for f, k in zip(fs, rows, strict=True)]
    if new:
        weights = [[*a, Number(1.0) * amount] for a in weights]
    if len(weights[0]) > getattr(learner, "budget", math.inf):
        weights[0].pop(int(np.argmin([a * a for a in weights[0]])))
    return mean, root(variance), weights


def quantized_on_a_budget(learner, x, y):
    C, a, known = parts(learner.f)
    k, influence, density = kernel_row(C, x), known["influence"], known["density"]
    mean = dot(k, a)
    e = y - mean
    far = [dot(d, d) for d in ([Number(u - v) for u, v in zip(c, x, strict=True)] for c in C)]
    j = int(np.argmin(far))
    if far[j] <= learner.radius**2:
        a[j] = a[j] + learner.step * e
        faded(learner, influence, density, kernel_row(C, C[j]))
        influence[j] = influence[j] + 1.0
    else:
        if len(a) == learner.budget:
            j = int(np.argmin([abs(one) * near for one, near in zip(a, density, strict=True)]))
            e = e + k[j] * a[j]
            density = [d - influence[j] * one for d, one in zip(density, kernel_row(C, C[j]), strict=True)]
            for values in (a, influence, density, k):
                values.pop(j)
        faded(learner, influence, density, k)
        density.append(dot(influence, k) + 1.0)
        influence.append(Number(1.0))
        a.append(learner.step * e)
    return mean, math.sqrt(1.0 / learner.step), [a], influence, density


def faded(learner, influence, density, k):
    influence[:] = [one * learner.forgetting for one in influence]
    density[:] = [one * learner.forgetting + near for one, near in zip(density, k, strict=True)]


def penalized(learner, x, y):
    C, a, known = parts(learner.f)
    k = kernel_row(C, x)
    mean = dot(k, a)
    std = spread(learner.errors, y - mean)
    adaptive = hasattr(learner, "epsilon")
    thresholds = [learner.penalty / (abs(one) + learner.epsilon) if adaptive else learner.penalty for one in a]
    a = added(a, learner.step * (y - mean), k)
    assert largest_coherence(k, known["kcc"]) > learner.coherence
    a = [Number(math.copysign(max(abs(one) - t, 0.0), one)) for one, t in zip(a, thresholds, strict=True)]
    return mean, std, [[one for one in a if one != 0.0]]


def mixed(learner, x, y):
    rows, v = [kernel_row(f.centers, x) for f in learner.fs], learner.gates[:, 0]
    f = [dot(k, parts(one)[1]) for one, k in zip(learner.fs, rows, strict=True)]
    psi = numbers(np.exp(v) / np.exp(v).sum())  # from the row before
    mean = dot(psi, f)
    factor = Number(2.0) * learner.mixing_step * (y - mean)
    v = [old + factor * share * (own - mean) for old, share, own in zip(v, psi, f, strict=True)]
    powers = [Number(math.exp(one)) for one in v]
    psi = [one / sum(powers) for one in powers]
    last = learner.step * (y - mean)
    weights = [[*parts(one)[1], last * share] for one, share in zip(learner.fs, psi, strict=True)]
    return mean, math.sqrt(1.0 / learner.step), weights


R = RBF(1.0)
CASES = {
    "FBKLMS": (ogp.kafbox.FBKLMS(R, coherence=0.8, budget=100), normalized, NEAR),
    "FBKLMS-full": (ogp.kafbox.FBKLMS(R, coherence=0.8, budget=8), normalized, FAR),
    "MKNLMS": (ogp.kafbox.MKNLMS([R, R, R], coherence=0.8), normalized, NEAR),
    "QKLMSFB": (ogp.kafbox.QKLMSFB(R, radius=0.4, budget=100), quantized_on_a_budget, NEAR),
    "QKLMSFB-full": (ogp.kafbox.QKLMSFB(R, radius=0.4, budget=8), quantized_on_a_budget, FAR),
    "KLMSCSL1": (ogp.kafbox.KLMSCSL1(R, step=0.2, coherence=0.5, penalty=1e-4), penalized, NEAR),
    "KLMSCSAL1": (ogp.kafbox.KLMSCSAL1(R, step=0.2, coherence=0.5, penalty=1e-5), penalized, NEAR),
    "MXKLMS": (ogp.kafbox.MXKLMS([R, R]), mixed, NEAR),
}


@pytest.mark.parametrize("name", CASES)
def test_formulas_count_a_loop_that_learns_the_same(name):
    model, loop, x = copy.deepcopy(CASES[name])
    model.set_params(engine="python").fit(*stream(40))
    size, (mean, std) = model.size_, model.predict_one(x, return_std=True)
    Number.count = 0
    ours, spread_of_ours, weights, *known = loop(model.learner, x, Number(0.7))
    assert model.multiplications(size, 2) == Number.count
    np.testing.assert_allclose([ours, spread_of_ours], [mean, std], rtol=1e-9)
    learner = model.learn_one(x, 0.7).learner
    fs = learner.fs if hasattr(learner, "fs") else [learner.f]
    for f, own in zip(fs, weights, strict=True):
        np.testing.assert_allclose(f.weights[:, 0], own, rtol=1e-9, atol=1e-12)
    for which, values in zip(("influence", "density"), known, strict=False):
        np.testing.assert_allclose(learner.f.numbers(which), values, rtol=1e-9)
