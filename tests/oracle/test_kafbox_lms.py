"""KAFBOX's predictions of the further least mean squares algorithms: see tests/fixtures/README.md.

Where KAFBOX has a defect, a subclass of the learner has its rule, and agrees; the library does not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.kernels import RBF
from onlinegp.models.lms.fbklms import FBKLMSLearner
from onlinegp.models.lms.klms_l1 import L1Learner
from onlinegp.models.lms.mxklms import MXKLMSLearner, shares
from onlinegp.models.lms.qklms_fb import QKLMSFBLearner
from onlinegp.models.lms.rffklms import RFFKLMSLearner

FIXTURE = Path(__file__).parents[1] / "fixtures" / "channel_switch.npz"
FOUR = tuple(map(RBF, (0.5, 1.0, 1.5, 2.0)))


@pytest.fixture(scope="module")
def golden():
    return np.load(FIXTURE)


class LeavesItselfOut(FBKLMSLearner):
    def energy(self, k2, own):
        return k2 if self.f.size else own**2


class CountsTwice(QKLMSFBLearner):
    """The significance itself takes the place of the density, by KAFBOX's recursion; c is the factor of its kernel."""

    c = np.pi / 2.0

    def significance(self):
        return self.f.numbers("density")

    def quantize(self, j, e):
        alpha, E = self.f.weights[:, 0], self.f.numbers("density")
        alpha[j] += self.step * e[0]
        k = self.f.at(self.f.center(j))[0]
        other = np.arange(len(E)) != j
        E[other] = self.forgetting * E[other] + self.c * np.abs(alpha[other]) * k[other]
        change = self.step * e[0]
        E[j] = abs(1 + change / alpha[j]) * self.forgetting * E[j] + abs(alpha[j] + change) * self.c * k[j]
        self.fade(j)

    def discard(self, j):
        k = self.f.at(self.f.center(j))[0]
        E = self.f.numbers("density")
        E -= self.f.numbers("influence")[j] * self.c * np.abs(self.f.weights[:, 0]) * k
        self.f.remove(j)

    def admit(self, x, k, kxx, e):
        self.f.append(x, self.step * e)
        E = self.f.numbers("density")
        E *= self.forgetting
        E += abs(self.step * e[0]) * np.append(k, kxx)
        self.fade(-1)

    def fade(self, j):
        influence = self.f.numbers("influence")
        influence *= self.forgetting
        influence[j] += 1.0


class AddsBeforeTheSize(L1Learner):
    def thresholds(self):
        return self.penalty / np.abs(self.f.weights + self.epsilon)


class WrongSign(MXKLMSLearner):
    def gradient(self, v, parts, y):
        psi = shares(v)
        mean = (psi * parts).sum(axis=0)
        return -2.0 * (y - mean) * psi * (parts + mean)


class Stored(RFFKLMSLearner):
    """With the frequencies and phases that KAFBOX drew."""

    def draw(self):
        stored = np.load(FIXTURE)
        return stored["rff_omega__rffklms"], stored["rff_b__rffklms"].ravel()


def learner(kind, model):
    """What the model starts, as another class of learner."""
    if kind is None:
        return model.start(5, 1)
    kernels = getattr(model, "kernel", None) or model.kernels
    return kind(kernels, 5, 1, **model.rule())


CASES = {
    "fbklms": (LeavesItselfOut, ogp.kafbox.FBKLMS(RBF(1.0), step=0.5, coherence=0.95, budget=100)),
    "qklms_fb": (CountsTwice, ogp.kafbox.QKLMSFB(RBF(1.0), step=0.5, radius=0.5, budget=50, forgetting=0.95)),
    "klms_csl1_b": (None, ogp.kafbox.KLMSCSL1(RBF(1.0), step=0.05, coherence=0.5, penalty=1e-4)),
    "klms_csal1": (AddsBeforeTheSize, ogp.kafbox.KLMSCSAL1(RBF(1.0), step=0.1, coherence=0.95, penalty=5e-4)),
    "klms_csal1_b": (AddsBeforeTheSize, ogp.kafbox.KLMSCSAL1(RBF(1.0), step=0.05, coherence=0.5, penalty=1e-5)),
    "mknlms_cs": (None, ogp.kafbox.MKNLMS(FOUR, step=0.5, coherence=0.95, epsilon=1e-2)),
    "mxklms": (WrongSign, ogp.kafbox.MXKLMS(FOUR, step=0.8, mixing_step=2.0)),
    "mxklms_b": (WrongSign, ogp.kafbox.MXKLMS(FOUR, step=0.8, mixing_step=0.01)),
    "rffklms": (
        Stored,
        ogp.kafbox.RFFKLMS(RBF(1.0), step=0.45, basis=300),
    ),  # half of its step, for its kernel
}


@pytest.mark.parametrize("name", CASES)
def test_predictions_and_sizes(name, golden):
    predicted, size = learner(*CASES[name]).run(golden["x"], golden["y"][:, None])
    np.testing.assert_allclose(predicted.mean[:, 0], golden[f"prediction__{name}"], rtol=0, atol=1e-8)
    if f"size__{name}" in golden:
        assert np.array_equal(size, golden[f"size__{name}"])


def test_csl1_beyond_its_stable_range_agrees_until_it_breaks_down_and_says_so(golden):
    """940 centers with a step of 0.1: the step exceeds 2 / |k|^2."""
    model = ogp.kafbox.KLMSCSL1(RBF(1.0), step=0.1, coherence=0.95, penalty=5e-4)
    with pytest.raises(ogp.BreakdownError, match="Lower the step") as caught:
        ogp.run(model, golden["x"], golden["y"])
    rows = len(caught.value.trace.mean)
    theirs = golden["prediction__klms_csl1"][:rows]
    assert rows > 300
    np.testing.assert_allclose(caught.value.trace.mean, theirs, rtol=0, atol=1e-8 * np.abs(theirs).max())


@pytest.mark.parametrize("name", [name for name, (kind, _) in CASES.items() if kind not in (None, Stored)])
def test_mended_ones_are_no_worse_on_this_stream(name, golden):
    """Of a few decibels; what is right is shown in tests/models/lms."""
    X, y = golden["x"], golden["y"]
    mended = ogp.run(CASES[name][1], X, y).mean
    ours, theirs = (((y - mean)[750:] ** 2).mean() for mean in (mended, golden[f"prediction__{name}"]))
    assert ours < 1.3 * theirs
