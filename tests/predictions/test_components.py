"""Components: mixtures of normal and t distributions, against SciPy and against mixtures of their members."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from onlinegp.predictions import Components, Gaussian, MixtureOf, Predictions, Samples, StudentT
from onlinegp.predictions.mixture import as_components, mix
from onlinegp.predictions.samples import draw

INF = np.inf
DEGREES = [(INF,), (2.1,), (INF, INF), (3.0, 4.5), (INF, 2.1, 4.0, 10.0), (6.0, INF, 2.1, INF, 6.0, 2.1, 40.0)]
every = pytest.mark.parametrize("degrees", DEGREES, ids=str)


def components(degrees, shape=(60,), seed=0, stretch=1.0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(len(degrees)), shape)
    means, scales = rng.normal(0.0, 2.0, weights.shape), rng.uniform(0.1, 2.0, weights.shape)
    return Components(weights, means, scales, degrees, stretch)


def scipy_kind(nu):
    return stats.norm if np.isinf(nu) else stats.t(nu)


def mixed(predicted, values):
    """Return the weighted sum of values (K lists of the shape of the mean)."""
    return sum(predicted.weights[..., k] * value for k, value in enumerate(values))


def standardized(predicted, y):
    return [(y - predicted.means[..., k]) / predicted.scales[..., k] for k in range(len(predicted.degrees))]


@every
@pytest.mark.parametrize("shape", [(60,), (1,), (20, 3)])
def test_they_are_what_scipy_says(degrees, shape):
    predicted = components(degrees, shape)
    y = predicted.means[..., 0] + np.linspace(-15.0, 15.0, predicted.mean.size).reshape(shape)
    kinds, r = [scipy_kind(nu) for nu in degrees], standardized(predicted, y)
    mean = mixed(predicted, np.moveaxis(predicted.means, -1, 0))
    deviations = [predicted.scales[..., k] * kind.std() for k, kind in enumerate(kinds)]
    square = mixed(predicted, [s**2 + (predicted.means[..., k] - mean) ** 2 for k, s in enumerate(deviations)])
    terms = [
        kind.logpdf(z) - np.log(predicted.scales[..., k]) for k, (kind, z) in enumerate(zip(kinds, r, strict=True))
    ]
    density = special.logsumexp(np.stack(terms, axis=-1), axis=-1, b=predicted.weights)
    np.testing.assert_allclose(predicted.mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(predicted.std, np.sqrt(square), rtol=1e-12)
    np.testing.assert_allclose(predicted.log_density(y), density, rtol=1e-12, atol=1e-13)
    below, above = ([getattr(kind, ask)(z) for kind, z in zip(kinds, r, strict=True)] for ask in ("cdf", "sf"))
    np.testing.assert_allclose(predicted.cdf(y), mixed(predicted, below), rtol=5e-12)
    np.testing.assert_allclose(predicted.survival(y), mixed(predicted, above), rtol=5e-12)
    assert predicted.log_densities(y).shape == predicted.weights.shape


@every
@pytest.mark.parametrize("shape", [(60,), (20, 3)])
def test_they_are_the_mixtures_of_their_members(degrees, shape):
    predicted = components(degrees, shape).affine(3.0, 2.0)
    twin = MixtureOf(predicted.weights, predicted.members)
    y = predicted.mean + np.random.default_rng(1).standard_t(2.0, shape)
    for ask in (lambda q: q.mean, lambda q: q.std, lambda q: q.log_density(y), lambda q: q.cdf(y), lambda q: q.tail(y)):
        np.testing.assert_allclose(ask(predicted), ask(twin), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(predicted.log_densities(y), twin.log_densities(y), rtol=1e-13, atol=1e-14)
    for p in (1e-9, 0.025, 0.5, 0.9):
        np.testing.assert_allclose(predicted.quantile(p), twin.quantile(p), rtol=1e-11)
        np.testing.assert_allclose(predicted.cdf(predicted.quantile(p)), p, rtol=1e-11)


@every
def test_a_row_alone_is_that_row_of_many(degrees):
    """To the bit."""
    predicted = components(degrees, (40, 2), stretch=np.linspace(0.5, 2.0, 80).reshape(40, 2))
    y = predicted.mean + 0.3
    asked = (
        lambda q, y: q.mean,
        lambda q, y: q.std,
        lambda q, y: q.log_density(y),
        lambda q, y: q.cdf(y),
        lambda q, y: q.quantile(0.9),
    )
    for ask in asked:
        alone = [ask(predicted.rows(slice(i, i + 1)), y[i : i + 1]) for i in range(40)]
        np.testing.assert_array_equal(np.concatenate(alone), ask(predicted, y))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_tails_keep_their_digits_far_out(sign):
    """Down to 1e-300, where 1 - cdf is zero and a density would vanish."""
    predicted = Components(np.array([[0.25, 0.75]]), np.array([[1.0, 1.0]]), np.array([[2.0, 3.0]]), (INF, 4.0))
    small = predicted.survival if sign > 0 else predicted.cdf
    normal = replace(predicted, weights=np.array([[1.0, 0.0]]))
    for z in (3.0, 20.0, 37.0):  # to 5.7e-300
        far = (normal.survival if sign > 0 else normal.cdf)([1.0 + 2.0 * sign * z])
        np.testing.assert_allclose(far, stats.norm.sf(z), rtol=1e-12)
    for t in (1e9, 1e20, 1e74):  # 4 degrees: density 12 (4 + t^2)^(-5/2), P(T > t) = 3 t^-4 but for a share of 1 / t^2
        y = [1.0 + 3.0 * sign * t]
        np.testing.assert_allclose(small(y), 0.75 * 3.0 * t**-4, rtol=1e-12)
        np.testing.assert_allclose(predicted.log_density(y), np.log(0.25 * 12.0) - 5.0 * np.log(t), rtol=1e-13)
    thin = Components(np.full((1, 2), 0.5), np.zeros((1, 2)), np.ones((1, 2)), (INF, INF))
    assert thin.log_density([sign * 1e100])[0] == pytest.approx(-0.5e200)


def test_a_component_without_weight_does_not_count():
    """Whatever it says: no number, or a point mass."""
    one = components((INF, 3.0), (5,))
    weights = np.concatenate([one.weights, np.zeros((5, 2))], axis=-1)
    means = np.concatenate([one.means, np.full((5, 1), np.nan), one.means[:, :1]], axis=-1)
    scales = np.concatenate([one.scales, np.ones((5, 1)), np.zeros((5, 1))], axis=-1)
    predicted, y = Components(weights, means, scales, (INF, 3.0, INF, INF)), one.means[:, 0]
    for ask in (lambda q: q.mean, lambda q: q.std, lambda q: q.log_density(y), lambda q: q.cdf(y)):
        np.testing.assert_allclose(ask(predicted), ask(one), rtol=1e-14)
    np.testing.assert_allclose(predicted.quantile(0.1), one.quantile(0.1), rtol=1e-14)
    assert np.isfinite(draw(predicted, np.random.default_rng(0))).all()


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_intervals_of_components_of_very_different_sizes(engine, monkeypatch):
    if engine == "python":
        monkeypatch.setattr("onlinegp.predictions.components.native", lambda: None)
    weights, scales = np.array([[0.999, 1e-50, 0.001]]), np.array([[1.0, 1e148, 0.1]])
    far = Components(weights, np.array([[0.0, -0.1, -1e147]]), scales, (INF, INF, INF))
    expected = stats.norm.ppf((np.array([0.05, 0.95]) - 0.001) / 0.999)
    np.testing.assert_allclose(np.concatenate(far.interval(0.9)), expected, rtol=1e-12)
    rng = np.random.default_rng(0)  # scales below the last digit of the means
    means = 1e17 * rng.uniform(1.0, 2.0, (300, 3))
    near = Components(np.full((300, 3), [1e-12, 1e-130, 1.0]), means, np.full((300, 3), [0.9, 1e17, 0.1]), (INF,) * 3)
    low, high = near.interval(0.9)
    assert (low <= high).all()


@pytest.mark.parametrize("degrees", [(INF,), (3.0,), (INF, 3.0)], ids=str)
def test_a_scale_of_zero_is_a_point_mass(degrees):
    shape = (3, len(degrees))
    predicted = Components(np.full(shape, 1.0 / len(degrees)), np.full(shape, 2.0), np.zeros(shape), degrees)
    y = np.array([1.0, 2.0, 3.0])
    assert predicted.log_density(y).tolist() == [-INF, INF, -INF]
    assert predicted.cdf(y).tolist() == [0.0, 0.5, 1.0]
    assert predicted.survival(y).tolist() == [1.0, 0.5, 0.0]
    assert predicted.std.tolist() == [0.0] * 3
    assert predicted.interval(0.9)[0].tolist() == [2.0] * 3
    beside = Components(np.array([[0.3, 0.7]]), np.array([[2.0, 2.0]]), np.array([[0.0, 1.0]]), (INF, 3.0))
    assert beside.log_density([3.0])[0] == pytest.approx(np.log(0.7) + stats.t(3.0).logpdf(1.0))
    assert beside.log_density([2.0])[0] == INF


def test_a_mean_in_common_is_the_mean():
    """To the bit, although the weights sum to one but for rounding."""
    rng = np.random.default_rng(0)
    mean = rng.normal(0.0, 1e6, 1000)
    predicted = Components(
        rng.dirichlet(np.ones(4), 1000), np.repeat(mean[:, None], 4, 1), np.ones((1000, 4)), DEGREES[4]
    )
    np.testing.assert_array_equal(predicted.mean, mean)


def test_mixtures_of_components_are_components():
    """Weights multiply, in any depth."""
    rng = np.random.default_rng(3)
    shape = (30, 2)
    normal = Gaussian(rng.normal(size=shape), rng.uniform(0.5, 2.0, shape))
    student = StudentT(rng.normal(size=shape), rng.uniform(0.5, 2.0, shape), 3.0)
    inner = components((INF, 4.0, 9.5), shape)
    weights = rng.dirichlet(np.ones(3), shape)
    weights[4] = [0.0, 1.0, 0.0]
    flat, twin = mix(weights, (normal, inner, student)), MixtureOf(weights, (normal, inner, student))
    assert isinstance(flat, Components)
    assert flat.degrees == (INF, INF, 4.0, 9.5, 3.0)
    deep = mix(np.full((*shape, 2), 0.5), (MixtureOf(weights, (normal, inner, student)), student))
    assert isinstance(deep, Components)
    assert deep.degrees == (*flat.degrees, 3.0)
    y = rng.normal(size=shape)
    for one, other in ((flat, twin), (deep, MixtureOf(np.full((*shape, 2), 0.5), (twin, student)))):
        np.testing.assert_allclose(one.weights.sum(axis=-1), 1.0, rtol=1e-14)
        for ask in (lambda q: q.mean, lambda q: q.std, lambda q: q.log_density(y), lambda q: q.survival(y)):
            np.testing.assert_allclose(ask(one), ask(other), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(one.quantile(0.1), other.quantile(0.1), rtol=1e-11)


def test_what_is_no_mixture_of_normals_and_students_stays_what_it_is():
    n, rng = 4, np.random.default_rng(0)
    normal, samples = Gaussian(np.zeros(n), np.ones(n)), Samples(rng.normal(size=(n, 50)))
    own = type("Own", (Gaussian,), {})(np.zeros(n), np.ones(n))
    each = StudentT(np.zeros(n), np.ones(n), np.linspace(3.0, 6.0, n))
    for member in (samples, own, each, StudentT(np.zeros(n), np.ones(n), 2.0), MixtureOf(np.ones((n, 1)), (own,))):
        assert as_components(member) is None
        assert isinstance(mix(np.full((n, 2), 0.5), (normal, member)), MixtureOf)
    assert as_components(normal).degrees == (INF,)


STRETCH = np.array([0.5, 1.0, 3.0])


def stretched(degrees=(INF, 3.0), shape=(3,)):
    plain = components(degrees, shape)
    return plain, replace(plain, stretch=STRETCH if len(shape) == 1 else np.tile(STRETCH[:, None], shape[1:]))


@every
@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_a_stretch_is_for_intervals_only(degrees, shape):
    plain, predicted = stretched(degrees, shape)
    y = plain.mean + 0.7
    for ask in (
        lambda q: q.mean,
        lambda q: q.std,
        lambda q: q.log_density(y),
        lambda q: q.log_densities(y),
        lambda q: q.cdf(y),
        lambda q: q.survival(y),
    ):
        np.testing.assert_array_equal(ask(predicted), ask(plain))
    for p in (0.025, 0.4, 0.975):
        np.testing.assert_allclose(
            predicted.quantile(p),
            plain.mean + predicted.stretch * (plain.quantile(p) - plain.mean),
            rtol=1e-14,
            atol=1e-14,
        )


@every
def test_y_is_outside_of_an_interval_where_its_tail_is_small(degrees):
    """So flags are raised outside of the intervals that are drawn, stretched or not."""
    _, predicted = stretched(degrees)
    for y in predicted.mean + np.linspace(-9.0, 9.0, 41)[:, None]:
        lower, upper = predicted.interval(0.9)
        np.testing.assert_array_equal(predicted.tail(y) < 0.1, (y < lower) | (y > upper))
        np.testing.assert_allclose(2.0 * stats.norm.sf(np.abs(predicted.z(y))), predicted.tail(y), rtol=1e-9)


def test_units_do_not_change_the_stretch():
    plain, predicted = stretched()
    other = predicted.affine(np.array([1.0, 2.0, 3.0]), 10.0)
    np.testing.assert_array_equal(other.stretch, STRETCH)
    np.testing.assert_allclose(
        other.quantile(0.9), np.array([1.0, 2.0, 3.0]) + 10.0 * predicted.quantile(0.9), rtol=1e-13
    )
    np.testing.assert_allclose(other.log_density(other.mean), plain.log_density(plain.mean) - np.log(10.0), rtol=1e-12)


def test_rows_keep_their_stretch():
    plain, predicted = stretched(shape=(3, 2))
    quantile = predicted.quantile(0.9)
    for which in (slice(1, 3), [2, 0], np.array([True, False, True])):
        np.testing.assert_array_equal(predicted.rows(which).quantile(0.9), quantile[which])
    np.testing.assert_array_equal(predicted.output(1).quantile(0.9), quantile[:, 1])
    both = Predictions.joined([predicted.rows(slice(0, 2)), plain, predicted.rows(slice(2, 3))])
    assert isinstance(both, Components)
    expected = np.concatenate([quantile[:2], plain.quantile(0.9), quantile[2:]])
    np.testing.assert_allclose(both.quantile(0.9), expected, rtol=1e-14)
    assert Predictions.joined([plain, plain]).stretch == 1.0


def test_other_kinds_are_joined_with_their_stretch():
    _, predicted = stretched()
    normal, student = Gaussian(np.ones(2), np.full(2, 2.0)), StudentT(np.ones(1), np.ones(1), 5.0)
    both = Predictions.joined([normal, predicted, student])
    assert isinstance(both, Components)
    for p in (0.05, 0.7):
        expected = [normal.quantile(p), predicted.quantile(p), student.quantile(p)]
        np.testing.assert_allclose(both.quantile(p), np.concatenate(expected), rtol=1e-13)
    single = Predictions.joined([normal, replace(as_components(normal), stretch=np.full(2, 3.0))])
    assert single.degrees == (INF,)
    np.testing.assert_array_equal(single.stretch, [1.0, 1.0, 3.0, 3.0])


def test_a_mixture_has_the_mean_stretch_of_its_members():
    plain, predicted = stretched()
    weights = np.tile([0.25, 0.75], (3, 1))
    np.testing.assert_allclose(mix(weights, (predicted, plain)).stretch, 0.25 * STRETCH + 0.75)
    assert mix(weights, (plain, plain)).stretch == 1.0
    alone = mix(np.ones((3, 1)), (predicted,))
    np.testing.assert_allclose(alone.quantile(0.9), predicted.quantile(0.9), rtol=1e-14)


def test_a_member_of_another_mixture_has_the_density_of_its_intervals():
    """With samples beside it there are no components, and no stretch: its distribution is stretched."""
    _, predicted = stretched()
    both = mix(np.tile([1.0, 0.0], (3, 1)), (predicted, Samples(np.random.default_rng(0).normal(size=(3, 50)))))
    assert isinstance(both, MixtureOf)
    np.testing.assert_allclose(both.quantile(0.9), predicted.quantile(0.9), rtol=1e-10)
    np.testing.assert_allclose(both.cdf(both.quantile(0.9)), 0.9, rtol=1e-10)
    np.testing.assert_allclose(both.std, STRETCH * predicted.std, rtol=1e-12)


def test_draws_have_the_quantiles():
    n = 20_000
    plain = components((INF, 3.0, INF), (1,), seed=5).rows(np.zeros(n, dtype=int))
    predicted = replace(plain, stretch=np.full(n, 2.5))
    for one in (plain, predicted):
        drawn = draw(one, np.random.default_rng(0))
        assert (
            stats.kstest(
                drawn, lambda y, one=one: plain.rows([0] * len(y)).cdf(one.rows([0] * len(y)).unstretched(y))
            ).pvalue
            > 0.01
        )


@pytest.mark.parametrize("p", [0.05, 0.25])
def test_quantiles_of_t_distributions_of_many_degrees_keep_their_digits(p: float) -> None:
    from scipy.stats import t

    degrees = (1e6, 2e6)
    mixed = Components(np.full((1, 2), 0.5), np.zeros((1, 2)), np.ones((1, 2)), degrees).quantile(p)
    assert np.mean([t.cdf(mixed, nu) for nu in degrees]) == pytest.approx(p, rel=1e-10)


def test_a_row_that_is_not_stretched_has_the_same_bits_beside_one_that_is():
    rng = np.random.default_rng(0)
    weights, means, scales = np.full((200, 2), 0.5), rng.normal(size=(200, 2)), rng.uniform(0.5, 2.0, (200, 2))
    stretch, y = np.where(np.arange(200) == 0, 1.3, 1.0), rng.normal(size=200)
    block = Components(weights, means, scales, (4.0, np.inf), stretch)
    rest = Components(weights[1:], means[1:], scales[1:], (4.0, np.inf))
    assert np.array_equal(block.z(y)[1:], rest.z(y[1:]))
    assert np.array_equal(block.interval()[0][1:], rest.interval()[0])


def test_joined_rows_keep_the_bits_of_where_y_is_in_them():
    """Kinds of other rows are components of weight zero: they change no rounding of cdf, survival, tail and z."""
    rng = np.random.default_rng(0)
    normal = Gaussian(rng.normal(size=5), rng.uniform(0.5, 2.0, 5))
    shape, degrees = (40, 12), (np.inf, 2.1, 4.0, 10.0) * 3
    mixed = Components(rng.dirichlet(np.ones(12), 40), rng.normal(size=shape), rng.uniform(0.5, 2.0, shape), degrees)
    joined, y = Predictions.joined([normal, mixed]), rng.normal(size=45)
    for name in ("cdf", "survival", "tail", "z", "pit"):
        alone = np.concatenate([getattr(normal, name)(y[:5]), getattr(mixed, name)(y[5:])])
        np.testing.assert_array_equal(getattr(joined, name)(y), alone, err_msg=name)
