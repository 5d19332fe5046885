"""Kernels as plain data: an exact round trip, and nothing but built-in kernels from a file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from onlinegp.kernels import (
    RBF,
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    from_spec,
    to_spec,
)

ARD = [0.1 + 0.2, 1e-5 / 3.0]


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.1 + 0.2),
        RBF(ARD),
        Matern12(tuple(ARD)),
        Matern32(np.array(ARD)),
        Matern52(np.float64(1 / 3)),
        RationalQuadratic(ARD, alpha=1 / 7),
        Periodic(ARD, period=np.array([1 / 3, 7.0])),
        Linear(ARD),
        Polynomial(degree=np.int64(3), offset=0.0, scale=1e-300),
        Constant(1.3),
        1 / 3 * (RBF(ARD) + Linear()) * Matern12() + 1.0,
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_round_trip_is_exact(kernel):
    again = from_spec(json.loads(json.dumps(to_spec(kernel))))
    X = np.random.default_rng(0).normal(size=(5, 2))
    assert again == kernel
    np.testing.assert_array_equal(again(X), kernel(X))
    np.testing.assert_array_equal(again.theta, kernel.theta)


def test_a_kernel_of_ones_own_is_not_written():
    class RBF(Kernel):  # not the built-in one, whatever its name
        pass

    with pytest.raises(TypeError, match="must be built in to be saved, got RBF"):
        to_spec(1.0 + RBF())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (None, "must be an object with a name, got None"),
        ("RBF", "must be an object with a name"),
        ({}, "must be an object with a name"),
        ({"kernel": 1}, "must be an object with a name"),
        ({"kernel": "os.system"}, "unknown kernel 'os.system'. The built-in kernels are: RBF"),
        ({"kernel": "Kernel"}, "unknown kernel"),
        ({"kernel": "Stationary"}, "unknown kernel"),
        (
            {"kernel": "RBF", "lengthscale": 1.0},
            "has no field 'lengthscale'. Its fields: length_scale",
        ),
        ({"kernel": "RBF", "__class__": 1.0}, "has no field '__class__'"),
        (
            {"kernel": "RBF", "length_scale": "1"},
            "kernel RBF is not valid: length_scale must be a number",
        ),
        ({"kernel": "RBF", "length_scale": -1}, "not valid: length_scale must be positive"),
        ({"kernel": "RBF", "length_scale": 10**400}, "kernel RBF is not valid"),
        ({"kernel": "RBF", "length_scale": [1, [2, 3]]}, r"length_scale\[1\] must be a number"),
        ({"kernel": "RBF", "length_scale": {"kernel": "RBF"}}, "length_scale must be a number"),
        ({"kernel": "Sum"}, "takes 2 kernels, but there are only 0 before it"),
        ([{"kernel": "RBF"}, {"kernel": "Sum"}], "takes 2 kernels, but there are only 1 before it"),
        ([{"kernel": "RBF"}, {"kernel": "Scaled", "kernel_": 1}], "has no field 'kernel_'. Its fields: variance"),
        ([{"kernel": "RBF"}, {"kernel": "Sum", "left": {"kernel": "RBF"}}], "has no field 'left'"),
        ([{"kernel": "RBF"}, {"kernel": "RBF"}], "must combine into one kernel, got 2"),
        ([], "must combine into one kernel, got 0"),
        ([[{"kernel": "RBF"}]], "must be an object with a name"),
        ([{"kernel": "X"}, {"kernel": "Scaled"}], "unknown kernel 'X'"),
        ([{"kernel": "RBF"}] + 10**5 * [{"kernel": "Scaled"}] + [{"kernel": "Scaled", "variance": 0}], "positive"),
    ],
)
def test_a_bad_spec_is_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        from_spec(spec)


def test_a_spec_reads_well():
    assert to_spec(2.0 * RBF(np.array([0.5, 1.0])) + Linear()) == [
        {"kernel": "RBF", "length_scale": [0.5, 1.0]},
        {"kernel": "Scaled", "variance": 2.0},
        {"kernel": "Linear", "variance": 1.0},
        {"kernel": "Sum"},
    ]
    assert from_spec({"kernel": "Matern32"}) == Matern32()


@pytest.mark.parametrize("deeper", [lambda k: k + 1.0, lambda k: 1.0 + k, lambda k: 2.0 * k])
def test_no_kernel_is_too_deep(deeper):
    kernel = RBF(0.5)
    for _ in range(20_000):
        kernel = deeper(kernel)
    spec = to_spec(kernel)
    assert to_spec(from_spec(json.loads(json.dumps(spec)))) == spec
