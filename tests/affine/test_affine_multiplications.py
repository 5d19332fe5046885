"""Formulas for multiplications of the affine projections, against plain loops that learn what the models learn."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import onlinegp as ogp
from counting import Number, added, dot, kernel_row, largest_coherence, matrix, numbers, root, solved, spread
from models import stream
from onlinegp.kernels import RBF


def looked(learner, x, y):
    """The kernel row of x, weights, mean and spread; and the window with x and y in it: slot, X, K, Y and F."""
    window, a = learner.window, numbers(learner.f.weights[:, 0])
    k = kernel_row(learner.f.centers, x)
    mean = dot(k, a)
    std = spread(learner.errors, y - mean)
    r, X, K = window.count % window.length, window.dump()["X"], matrix(window.K)
    assert len(X) == window.length
    X[r], Y, F = x, numbers(window.Y[:, 0]), numbers(window.F[:, 0])
    K[r], Y[r], F[r] = kernel_row(X, x), y, mean
    for row, value in zip(K, K[r], strict=True):
        row[r] = value
    return k, a, mean, std, (r, X, K, Y, F)


def ridge(A, epsilon):
    return [[value + epsilon * (i == j) for j, value in enumerate(row)] for i, row in enumerate(A)]


def kap(learner, x, y):
    k, a, mean, std, (r, _, _, Y, F) = looked(learner, x, y)
    assert largest_coherence(k, learner.f.numbers("kcc")) > learner.coherence
    H, G = matrix(learner.window.H), matrix(learner.gram.G)
    H[r] = k
    G[r] = [dot(row, k) for row in H]
    for row, value in zip(G, G[r], strict=True):
        row[r] = value
    Z = solved(ridge(G, learner.epsilon), [learner.step * (one - f) for one, f in zip(Y, F, strict=True)])
    for z, row in zip(Z, H, strict=True):
        a = added(a, z, row)
    return mean, std, a, [f + dot(row, Z) for f, row in zip(F, G, strict=True)]


def correction(learner, K, E):
    name = type(learner).__name__
    if name == "LKAPALearner":
        return [learner.step * e for e in E]
    if name == "NLKAPALearner":
        return solved(ridge(K, learner.epsilon), [learner.step * e for e in E])
    share = Number(learner.step) / len(E)
    halves = [e if learner.loss.name == "absolute" else e * 0.5 for e in E]
    return [share * half / K[i][i] for i, half in enumerate(halves)]


def recent(learner, x, y):
    _, a, mean, std, (_, X, K, Y, F) = looked(learner, x, y)
    Z = correction(learner, K, [one - f for one, f in zip(Y, F, strict=True)])
    C, count, full, keep = learner.f.centers, learner.window.count + 1, len(a) == learner.budget, learner.keep
    j = (count - 1) % learner.budget if full else len(a)
    old, weight = (C[j].copy(), a.pop(j)) if full else (None, None)
    if keep != 1.0:
        a, F = [one * keep for one in a], [f * keep for f in F]
        weight = weight * keep if full else None
    a.insert(j, Number(0.0))
    C = np.insert(np.delete(C, j, axis=0) if full else C, j, x, axis=0)
    for slot, z in enumerate(Z):
        row = count - 1 - (count - 1 - slot) % len(Z)
        place = row % learner.budget if learner.budget else row
        a[place] = a[place] + z
    KZ = [dot(row, Z) for row in K]
    norm2 = Number(learner.norms[0]) if hasattr(learner, "norms") else None
    if norm2 is not None:
        norm2 = sum((z * (f * 2.0 + kz) for z, f, kz in zip(Z, F, KZ, strict=True)), norm2)
    F = [f + kz for f, kz in zip(F, KZ, strict=True)]
    if norm2 is not None and norm2 > learner.radius**2:
        scale = Number(learner.radius) / root(norm2)
        norm2, a, F = norm2 * (scale * scale), [one * scale for one in a], [f * scale for f in F]
        weight = weight * scale if full else None
    if full:
        F = [f - one * weight for f, one in zip(F, kernel_row(X, old), strict=True)]
    if full and norm2 is not None:
        norm2 = norm2 - weight * (dot(kernel_row(C, old), a) * 2.0 + weight * 1.0)
        if count % learner.budget == 0:
            norm2 = dot(a, [dot(kernel_row(C, c), a) for c in C])
    return mean, std, a, F


def phypass(learner, x, y):
    k, a, mean, std, (r, _, _, Y, F) = looked(learner, x, y)
    kcc, chosen = learner.f.numbers("kcc"), learner.chosen.dump()
    assert largest_coherence(k, kcc) > learner.coherence
    H, w, s = matrix(learner.window.H), len(Y), learner.chosen.most
    H[r] = k
    best = np.argsort([-(one / math.sqrt(own)) for one, own in zip(k, kcc, strict=True)], kind="stable")[:s]
    places, C, K = chosen["places"], chosen["C"], matrix(chosen["K"])
    slots = range(r * s, r * s + s)
    places[r], C[r * s : r * s + s] = best, learner.f.centers[best]
    for slot in slots:
        K[slot] = kernel_row(C, C[slot])
        for row, value in zip(K, K[slot], strict=True):
            row[slot] = value
    along, length = matrix(chosen["a"]), numbers(chosen["d"])
    near = [k[j] for j in best]
    for slot in slots:
        assert K[slot][slot] * 1e-12 < 1e-6  # what is left of a center that others express
    along[r] = solved([[K[i][j] for j in slots] for i in slots], near)
    length[r] = dot(near, along[r])
    B = [(one - f) / d for one, f, d in zip(Y, F, length, strict=True)]
    V = [b * one for b, row in zip(B, along, strict=True) for one in row]
    squares = dot(length, [b * b for b in B])
    factor = squares / dot(V, [dot(row, V) for row in K]) * learner.step
    V = [factor * v for v in V]
    for place, v in zip(places.ravel(), V, strict=True):
        a[place] = a[place] + v
        F = [f + row[place] * v for f, row in zip(F, H, strict=True)]
    assert len(V) == w * s
    return mean, std, a, F


def l2s(learner, x, y):
    atoms, d = learner.atoms, len(x)
    m, facts = atoms.size, matrix(atoms._facts[:, : atoms.size])
    a, widths = numbers(atoms.weights[:, 0]), len(atoms.variances)
    d2 = [dot(z, z) for z in (numbers(c - x) for c in atoms.C)]
    k = [Number(math.exp(-(facts[1][i] * d2[i]))) * facts[0][i] for i in range(m)]
    mean = dot(k, a)
    std = spread(learner.errors, y - mean)
    for q in range(widths):
        near = [Number(math.exp(-(facts[3 + widths + q][i] * d2[i]))) * facts[3 + q][i] for i in range(m)]
        assert max(near) >= learner.coherence
    best = np.argsort([-(k[i] * facts[2][i]) for i in range(m)], kind="stable")[: learner.selected]

    def product(i, j):
        both, z = Number(atoms.variance[i] + atoms.variance[j]), numbers(atoms.C[i] - atoms.C[j])
        power = Number(math.exp(-(0.5 / both * dot(z, z))))
        value = Number((both * (2.0 * math.pi)) ** (-0.5 * d)) * power * (1.0 - 1e-3)
        return value + (1e-3 if i == j else 0.0)

    G = [[product(i, j) for j in best[: row + 1]] for row, i in enumerate(best)]
    near = [k[i] for i in best]
    z = solved(G, near)
    amount = learner.step / (dot(near, z) + learner.epsilon) * (y - mean)
    for i, one in zip(best, z, strict=True):
        a[i] = a[i] + one * amount
    return mean, std, a, None


R, SHORT = RBF(1.0), {"window": 4, "step": 0.3}
CASES = {
    "KAP": (ogp.kafbox.KAP(R, coherence=0.6, **SHORT), kap),
    "LKAPA": (ogp.kafbox.LKAPA(R, budget=None, **SHORT), recent),
    "LKAPA-full": (ogp.kafbox.LKAPA(R, budget=6, leak=0.0, **SHORT), recent),
    "NLKAPA": (ogp.kafbox.NLKAPA(R, leak=0.0, budget=None, **SHORT), recent),
    "NLKAPA-full": (ogp.kafbox.NLKAPA(R, leak=0.1, epsilon=0.1, budget=6, **SHORT), recent),
    "KAPSM": (ogp.kafbox.KAPSM(R, radius=None, budget=None, **SHORT), recent),
    "KAPSM-absolute-ball": (ogp.kafbox.KAPSM(R, loss="absolute", radius=0.05, budget=None, **SHORT), recent),
    "KAPSM-ball-full": (ogp.kafbox.KAPSM(R, radius=1e-3, budget=6, **SHORT), recent),
    "KAPSM-full": (ogp.kafbox.KAPSM(R, radius=None, budget=6, **SHORT), recent),
    "PHYPASS": (ogp.kafbox.PHYPASS(R, coherence=0.6, **SHORT), phypass),
    "PHYPASS-several": (ogp.kafbox.PHYPASS(R, selected=3, coherence=0.6, **SHORT), phypass),
    "L2S": (ogp.kafbox.L2S((1.0, 0.8), coherence=0.7), l2s),
    "L2S-several": (ogp.kafbox.L2S((1.0, 0.8, 0.6), selected=3, coherence=0.7), l2s),
}
LEARNED, NEXT = stream(60), [([0.05 * i, 0.1 - 0.04 * i], 0.7 - 0.3 * i) for i in range(6)]


@pytest.mark.parametrize("name", CASES)
def test_formulas_count_a_loop_that_learns_the_same(name):
    """Over as many samples as the budget: once in so many, KAPSM computes its norm anew."""
    model, loop = copy.deepcopy(CASES[name])
    model.set_params(engine="python").fit(*LEARNED)
    size, counted = model.size_, 0
    samples = NEXT[: 6 if name.endswith("full") else 1]
    for x, y in samples:
        mean, std = model.predict_one(x, return_std=True)
        Number.count = 0
        ours, spread_of_ours, weights, F = loop(model.learner, np.array(x), Number(y))
        counted += Number.count
        np.testing.assert_allclose([ours, spread_of_ours], [mean, std], rtol=1e-9)
        learner = model.learn_one(x, y).learner
        f = learner.atoms if name.startswith("L2S") else learner.f
        np.testing.assert_allclose(f.weights[:, 0], weights, rtol=0, atol=1e-9)
        if F is not None:
            np.testing.assert_allclose(learner.window.F[:, 0], F, rtol=0, atol=1e-9)
    assert model.multiplications(size, 2) * len(samples) == pytest.approx(counted, rel=1e-12)
