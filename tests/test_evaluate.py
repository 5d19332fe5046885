"""`run` warns once if the intervals of a model with a noise parameter are far too narrow."""

import warnings

import numpy as np
import pytest

import onlinegp as ogp

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 2))
Y = X[:, 0] + rng.normal(size=600)


def test_a_noise_that_is_far_too_small_is_named_with_a_remedy():
    with pytest.warns(UserWarning, match=r"KRLST\(noise=0.001\) hold only \d+%.*Tuned\(KRLST\(\)\)") as caught:
        ogp.run(ogp.Scaled(ogp.KRLST(noise=1e-3, budget=20)), X, Y)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (ogp.KRLST(noise=1.0, budget=20), 600),
        (ogp.Calibrated(ogp.KRLST(noise=1e-3, budget=20)), 600),
        (ogp.KRLST(noise=1e-3, budget=20), 399),  # too few to judge
        (ogp.KLMS(), 600),  # has no noise
    ],
)
def test_no_warning(model, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ogp.run(model, X[:rows], Y[:rows])
