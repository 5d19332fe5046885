"""
From KAFBOX: four filters on a chaotic series
=============================================

For a researcher who knows the Kernel Adaptive Filtering Toolbox: its usual experiment, prediction of the Lorenz series
from the last six values, with learning curves, and with what KAFBOX does not show: the intervals.
"""

import numpy as np

import onlinegp as ogp
from onlinegp import plots
from onlinegp.datasets import embed, lorenz
from onlinegp.kernels import RBF

# %%
# The first coordinate of the Lorenz system, in standard units, with a little noise.

rng = np.random.default_rng(0)
series = lorenz(3006)[:, 0]
series = (series - series.mean()) / series.std() + 0.02 * rng.standard_normal(len(series))
X, y = embed(series, 6)

# %%
# In KAFBOX: `kaf = krlst(struct('lambda', 1, 'M', 50, 'sn2', 1e-3, 'kerneltype', 'gauss', 'kernelpar', 2))`, and a loop
# of `kaf.evaluate` and `kaf.train`. Here the loop is `run`.

kernel = RBF(2.0)
models = {
    "KLMS": ogp.KLMS(kernel, step=0.5),
    "QKLMS": ogp.QKLMS(kernel, step=0.5, radius=0.3),
    "KRLS": ogp.KRLS(kernel, threshold=1e-4),
    "KRLS-T": ogp.KRLST(kernel, noise=1e-3, budget=50),
}
traces = {name: ogp.run(model, X, y) for name, model in models.items()}
plots.learning_curves(y, traces, window=200)

# %%
# Centers, error and coverage over the last thousand samples:

late = slice(-1000, None)
for name, trace in traces.items():
    lower, upper = trace.interval(0.95)
    inside = ((lower <= y) & (y <= upper))[late].mean()
    error = 10 * np.log10(np.mean((y - trace.mean)[late] ** 2))
    print(f"{name:7} {trace.size[-1]:5d} centers, {error:6.1f} dB, {inside:4.0%} inside the 95% interval")

# %%
# Two filters can have similar errors and very different intervals. The band of KRLS-T, and that of KLMS:

plots.stream(y, traces["KRLS-T"], rows=slice(-120, None))

# %%

plots.stream(y, traces["KLMS"], rows=slice(-120, None))

# sphinx_gallery_thumbnail_number = 1
