"""The compiled kernels against the Python ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines import make_engine
from onlinegp.engine import available
from onlinegp.kernels import (
    RBF,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
)
from onlinegp.recipes.beliefs import Prior
from onlinegp.recipes.update import Recipe

pytestmark = pytest.mark.skipif(not available(), reason="the compiled engine was not built")

POSITIVE = st.floats(0.05, 20.0)


def scales(d: int) -> st.SearchStrategy:
    return st.one_of(POSITIVE, st.lists(POSITIVE, min_size=d, max_size=d))


def leaves(d: int) -> st.SearchStrategy:
    stationary = [st.builds(kind, scales(d)) for kind in (RBF, Matern12, Matern32, Matern52)]
    return st.one_of(
        *stationary,
        st.builds(RationalQuadratic, scales(d), POSITIVE),
        st.builds(Periodic, scales(d), scales(d)),
        st.builds(Linear, scales(d)),
        st.builds(Polynomial, st.integers(1, 5), st.floats(0.0, 2.0), POSITIVE),
        st.builds(Constant, POSITIVE),
    )


def kernels(d: int) -> st.SearchStrategy:
    return st.recursive(
        leaves(d),
        lambda inner: st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a * b, inner, inner),
            st.builds(lambda a, c: c * a, inner, POSITIVE),
        ),
        max_leaves=6,
    )


def native_rows(kernel, C: np.ndarray, X: np.ndarray) -> np.ndarray:
    recipe = Recipe(kernel, Prior(1.0))
    engine = make_engine("native", recipe, recipe.start(C.shape[1]))
    engine.learn(C, np.zeros((len(C), 1)))
    return engine.core.kernel_rows(X)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(1, 9), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_rows_equal_the_python_kernels(data, d, m, seed):
    kernel = data.draw(kernels(d))
    rng = np.random.default_rng(seed)
    C, X = rng.normal(size=(m, d)), rng.normal(size=(3, d))
    X[0] = C[m // 2]
    expected = np.array([kernel.row(C, x) for x in X])
    size = np.abs(np.array([kernel.diag(C).max(), kernel.diag(X).max()])).max()
    np.testing.assert_allclose(native_rows(kernel, C, X), expected, rtol=1e-11, atol=1e-13 * size)


def test_far_inputs_have_no_covariance():
    C = np.array([[0.0], [1e140], [-1e149]])
    for kernel in (RBF(1e-3), Matern12(), Matern32(2.0), Matern52([0.5])):
        K = native_rows(kernel, C, C)
        np.testing.assert_array_equal(K, np.eye(3))


def test_offsets_cost_no_accuracy():
    """Differences come before scaling, so inputs far from the origin (time stamps) keep their digits."""
    t = 1.7e9 + np.arange(50.0)[:, None] * 0.25
    for kernel in (RBF(3.0), RBF([3.0]), Matern32(3.0)):
        np.testing.assert_allclose(native_rows(kernel, t, t), kernel(t - t[0]), rtol=1e-13)


def test_exp_within_two_ulp():
    from onlinegp.engine import _native

    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 1020, 200_000), rng.uniform(0, 2, 200_000), 2.0 ** rng.uniform(-60, 0, 100_000)])
    exact = np.exp2(-x.astype(np.longdouble))
    error = np.abs(_native.exp2_minus(x) - exact) / np.spacing(exact.astype(np.float64))
    fused = _native.instruction_set in ("avx2", "avx512")  # without fused multiply-adds, every term rounds twice
    assert error.max() <= (2.0 if fused else 2.1)


def test_exp_limits():
    from onlinegp.engine import _native

    x = np.array([0.0, 1.0, 0.5, 1020.0, 1021.0, 1e4, 1e300, np.inf])
    expected = [1.0, 0.5, np.sqrt(0.5), 2.0**-1020, 0.0, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(_native.exp2_minus(x), expected, rtol=1e-15)
