"""Every kind of prediction is a distribution: density, probability and quantile agree, nested and joined too."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from onlinegp.predictions import Components, Gaussian, MixtureOf, Predictions, Samples, StudentT
from onlinegp.predictions.student import student_constant

ZERO, ONE = np.zeros(3), np.ones(3)


def gaussian(n=5, seed=0):
    rng = np.random.default_rng(seed)
    return Gaussian(rng.normal(0.0, 3.0, n), rng.uniform(0.3, 2.0, n))


def student(n=5, seed=1, degrees=3.0):
    rng = np.random.default_rng(seed)
    return StudentT(rng.normal(0.0, 3.0, n), rng.uniform(0.3, 2.0, n), degrees)


def mixture(n=5, seed=2, members=None):
    members = members or (gaussian(n), student(n), student(n, 3, 12.0))
    w = np.random.default_rng(seed).dirichlet(np.ones(len(members)), n)
    return MixtureOf(w, tuple(members))


def nested(n=5):
    return mixture(n, 4, (mixture(n), gaussian(n, 7), mixture(n, 5)))


def far_apart(n=5):
    """A sharp peak and a wide plain, far from it, of little weight."""
    narrow, wide = Gaussian(np.zeros(n), np.full(n, 1e-6)), StudentT(np.full(n, 50.0), np.full(n, 1e3), 3.0)
    return MixtureOf(np.column_stack([np.linspace(0.9, 1.0, n), np.linspace(0.1, 0.0, n)]), (narrow, wide))


def components(n=5, seed=6, degrees=(np.inf, 3.0, 8.5, np.inf), outputs=(), stretch=1.0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(len(degrees)), (n, *outputs))
    return Components(
        weights, rng.normal(0.0, 3.0, weights.shape), rng.uniform(0.3, 2.0, weights.shape), degrees, stretch
    )


KINDS = {
    "Gaussian": gaussian,
    "StudentT": student,
    "StudentT-each": lambda n=5: student(n, degrees=np.linspace(3.0, 9.0, n)),
    "MixtureOf": mixture,
    "nested": nested,
    "Components": components,
}
every = pytest.mark.parametrize("kind", KINDS)
LEVELS = (1e-6, 0.01, 0.025, 0.3, 0.5, 0.9, 0.975, 0.999)


@every
def test_densities_integrate_to_one_and_to_their_moments(kind):
    predicted = KINDS[kind](3)

    def moment(i, power):
        def weighed(y):
            return np.exp(predicted.log_density(np.full(3, y))[i]) * (y - predicted.mean[i]) ** power

        center = predicted.mean[i]
        halves = [(-np.inf, center - 20), (center - 20, center), (center, center + 20), (center + 20, np.inf)]
        return sum(integrate.quad(weighed, *half, limit=200)[0] for half in halves)

    for i in range(3):
        assert moment(i, 0) == pytest.approx(1.0, abs=1e-7)
        assert moment(i, 1) == pytest.approx(0.0, abs=1e-5)
        assert np.sqrt(moment(i, 2)) == pytest.approx(
            predicted.std[i], rel=2e-2 if "T" in kind or kind == "nested" else 1e-6
        )


@every
@pytest.mark.parametrize("p", LEVELS)
def test_quantiles_invert_probabilities(kind, p):
    predicted = KINDS[kind](50)
    np.testing.assert_allclose(predicted.cdf(predicted.quantile(p)), p, rtol=1e-11)


@pytest.mark.parametrize("p", LEVELS)
def test_quantiles_of_members_of_very_different_width(p):
    predicted = far_apart()
    y = predicted.quantile(p)
    np.testing.assert_allclose(predicted.cdf(y), p, rtol=1e-9)
    assert y[-1] == pytest.approx(1e-6 * stats.norm.ppf(p), rel=1e-12, abs=1e-20)  # the plain has no weight there


@every
def test_densities_are_slopes_of_probabilities(kind):
    predicted = KINDS[kind](50)
    y = predicted.mean + 0.7 * predicted.std
    slope = (predicted.cdf(y + 1e-5) - predicted.cdf(y - 1e-5)) / 2e-5
    np.testing.assert_allclose(np.exp(predicted.log_density(y)), slope, rtol=1e-5)


def test_students_t_is_that_of_scipy():
    predicted = student(40, degrees=np.linspace(2.5, 30.0, 40))
    theirs = stats.t(predicted.degrees, predicted.mean, predicted.scale)
    y = predicted.mean + np.linspace(-30.0, 30.0, 40)
    np.testing.assert_allclose(predicted.log_density(y), theirs.logpdf(y), rtol=1e-12)
    np.testing.assert_allclose(predicted.cdf(y), theirs.cdf(y), rtol=1e-11)
    np.testing.assert_allclose(predicted.quantile(0.05), theirs.ppf(0.05), rtol=1e-9)
    np.testing.assert_allclose(predicted.std, theirs.std(), rtol=1e-12)
    assert np.isinf(StudentT(np.zeros(1), np.ones(1), 2.0).std)


@pytest.mark.parametrize("nu", [1, 2, 3, 4, 5, 6, 7, 12, 29, 30])
def test_probabilities_of_whole_degrees(nu):
    t = np.concatenate([-np.geomspace(1e-2, 1e100, 200), [0.0], np.geomspace(1e-2, 1e100, 200)])
    predicted = StudentT(np.zeros(401), np.ones(401), float(nu))
    np.testing.assert_allclose(predicted.cdf(t), stats.t(nu).cdf(t), rtol=5e-12)


def test_a_mixture_of_one_is_its_member():
    one, y = student(9), np.linspace(-3, 3, 9)
    predicted = MixtureOf(np.ones((9, 1)), (one,))
    for ask in (lambda q: q.mean, lambda q: q.std, lambda q: q.log_density(y), lambda q: q.cdf(y)):
        np.testing.assert_allclose(ask(predicted), ask(one), rtol=1e-14)
    np.testing.assert_array_equal(predicted.quantile(0.1), one.quantile(0.1))


def test_densities_far_out_do_not_vanish():
    predicted = mixture(4)
    far = predicted.log_density(np.full(4, 1e100))
    assert np.isfinite(far).all()
    thin = MixtureOf(np.full((4, 2), 0.5), (gaussian(4), gaussian(4, 3)))
    assert np.isfinite(thin.log_density(np.full(4, 1e100))).all()


@every
def test_other_units(kind):
    predicted, y = KINDS[kind](20), np.linspace(-4.0, 4.0, 20)
    other = predicted.affine(5.0, 3.0)
    np.testing.assert_allclose(other.mean, 5.0 + 3.0 * predicted.mean)
    np.testing.assert_allclose(other.std, 3.0 * predicted.std)
    np.testing.assert_allclose(other.cdf(5.0 + 3.0 * y), predicted.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(other.log_density(5.0 + 3.0 * y), predicted.log_density(y) - np.log(3.0), atol=1e-12)
    np.testing.assert_allclose(other.interval(0.9), 5.0 + 3.0 * np.array(predicted.interval(0.9)))


def same(one: Predictions, other: Predictions) -> None:
    y = np.linspace(-3.0, 3.0, one.mean.size).reshape(one.mean.shape)
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.std, other.std)
    np.testing.assert_array_equal(one.log_density(y), other.log_density(y))


@every
def test_parts_joined_are_the_whole(kind):
    predicted = KINDS[kind](20)
    same(
        Predictions.joined([predicted.rows(slice(0, 7)), predicted.rows(slice(7, 7)), predicted.rows(slice(7, 20))]),
        predicted,
    )
    same(predicted.rows(np.arange(20) % 2 == 0), predicted.rows(slice(0, 20, 2)))


def test_students_of_different_degrees_are_joined():
    parts = [student(3, degrees=3.0), student(4, degrees=6.0)]
    predicted = Predictions.joined(parts)
    np.testing.assert_array_equal(predicted.degrees, [3.0] * 3 + [6.0] * 4)
    np.testing.assert_array_equal(predicted.quantile(0.1), np.concatenate([part.quantile(0.1) for part in parts]))


def test_predictions_of_different_kinds_are_joined():
    parts = [gaussian(3), nested(4), gaussian(2, 5), student(3), mixture(0)]
    predicted, y = Predictions.joined(parts), np.linspace(-3.0, 3.0, 12)
    for ask in (lambda q: q.mean, lambda q: q.std, lambda q: q.quantile(0.1), lambda q: q.interval(0.5)[1]):
        np.testing.assert_allclose(ask(predicted), np.concatenate([ask(part) for part in parts]), rtol=1e-14)
    pieces = np.split(y, [3, 7, 9])
    expected = [part.log_density(piece) for part, piece in zip(parts[:4], pieces, strict=True)]
    np.testing.assert_allclose(predicted.log_density(y), np.concatenate(expected), rtol=1e-13)
    again = Predictions.joined([predicted, Predictions.joined(parts)])
    np.testing.assert_array_equal(again.mean, np.tile(predicted.mean, 2))


def test_one_of_several_outputs():
    rng = np.random.default_rng(0)
    members = tuple(Gaussian(rng.normal(size=(6, 2)), rng.uniform(1.0, 2.0, (6, 2))) for _ in range(3))
    predicted = MixtureOf(rng.dirichlet(np.ones(3), (6, 2)), members)
    for i in range(2):
        one = predicted.output(i)
        np.testing.assert_array_equal(one.mean, predicted.mean[:, i])
        np.testing.assert_allclose(one.quantile(0.2), predicted.quantile(0.2)[:, i], rtol=1e-14)


def test_what_is_missing_stays_missing():
    predicted = mixture(4).affine(np.array([0.0, np.nan, 0.0, 0.0]), 1.0)
    for values in (predicted.mean, predicted.std, predicted.quantile(0.1), predicted.log_density(np.zeros(4))):
        np.testing.assert_array_equal(np.isnan(values), [False, True, False, False])


@pytest.mark.parametrize("kind", [Gaussian(ZERO, ONE), StudentT(ZERO, ONE, 3.0), Samples(np.eye(3))])
@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, np.nan])
def test_there_is_no_quantile_of_an_impossible_probability(kind, p):
    for predicted in (kind, MixtureOf(np.ones((3, 1)), (kind,))):
        with pytest.raises(ValueError, match="p must be greater than 0 and less than 1"):
            predicted.quantile(p)


@pytest.mark.parametrize(("degrees", "p"), [(1.0, 1e-280), (2.1, 1e-200), (3.0, 1e-150), (3.0, 1e-60), (12.0, 1e-300)])
def test_quantiles_far_out(degrees, p):
    predicted = StudentT(ZERO, ONE, degrees)
    far = predicted.quantile(p)
    # P(T <= -t) = C t^-nu / nu, C t^-(nu + 1) the density, for t^2 >> nu; log(t) keeps t^2 from overflowing
    C = np.exp(student_constant(degrees) + 0.5 * (degrees + 1.0) * np.log(degrees))
    np.testing.assert_allclose(np.log(C / degrees) - degrees * np.log(-far), np.log(p), rtol=1e-12)


@pytest.mark.parametrize("kind", [*KINDS, "Samples"])
@pytest.mark.parametrize("ask", ["log_density", "cdf", "survival", "tail", "z"])
def test_values_of_another_shape_are_refused(kind, ask):
    predicted = Samples(np.random.default_rng(0).normal(size=(5, 40))) if kind == "Samples" else KINDS[kind](5)
    asked = getattr(predicted, ask)
    for y in (np.zeros((5, 1)), np.zeros((1, 5)), np.zeros(1), np.zeros(6)):  # most would broadcast in silence
        with pytest.raises(ValueError, match=r"y must be a number or have the shape of the predictions, \(5,\), got"):
            asked(y)
    np.testing.assert_array_equal(asked(0.5), asked(np.full(5, 0.5)))


@pytest.mark.parametrize("degrees", [1.0, 4.0, 7.0])
def test_probabilities_beyond_what_can_be_squared(degrees):
    far = np.array([-np.inf, -1e200, -1e160, 1e160, 1e200, np.inf])
    p = StudentT(np.zeros(6), np.ones(6), degrees).cdf(far)
    np.testing.assert_allclose(p, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], atol=1e-150)
