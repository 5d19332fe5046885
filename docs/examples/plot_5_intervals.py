"""
Intervals that can be trusted
=============================

A prediction without an interval is half an answer; an interval that is wrong is worse. Here is how to see which models
give intervals to be trusted, and how to correct one whose noise was set wrong.
"""

import numpy as np
from matplotlib import pyplot as plt

import onlinegp as ogp
from onlinegp import plots
from onlinegp.datasets import embed, mackey_glass
from onlinegp.kernels import RBF
from onlinegp.metrics import coverage

# %%
# The Mackey-Glass series with noise, one step ahead from seven samples.

rng = np.random.default_rng(0)
series = mackey_glass(1500) + 0.05 * rng.standard_normal(1500)
X, y = embed(series - series.mean(), 7)

kernel = 0.1 * RBF(1.0)
models = {
    "KLMS": ogp.KLMS(kernel, step=5.0),
    "beta-KLMS": ogp.BetaKLMS(kernel, noise=0.005),
    "KRLS-T": ogp.KRLST(kernel, noise=0.005, budget=80),
    "KRLS-T, noise too small": ogp.KRLST(kernel, noise=0.0005, budget=80),
    "the same, power learned": ogp.KRLST(kernel, noise=0.0005, budget=80, power="learned"),
}
traces = {name: ogp.run(model, X, y) for name, model in models.items()}

# %%
# Calibration: how often was y inside, and how often should it have been?

plots.calibration(y, traces)

# %%
# Width counts too: the best interval is the narrowest that keeps what it promises. The log density says both at once.

for name, trace in traces.items():
    late = slice(300, None)
    inside = coverage(y[late], trace.mean[late], trace.std[late], 0.9)
    width = 2 * 1.645 * trace.std[late].mean()
    density = trace.log_density[late].mean()
    print(f"{name:24} 90% interval contains {inside:6.1%}, width {width:.2f}, log density {density:5.2f}")

# %%
# The band of the best, and where y left it. One in ten should.

trace = traces["KRLS-T"]
rows = slice(-150, None)
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
plots.stream(y, trace, rows=rows, level=0.9, ax=ax)
t = np.arange(len(y))[rows]
out = np.abs(y - trace.mean)[rows] > 1.645 * trace.std[rows]
ax.plot(t[out], y[rows][out], "o", color=plots.RED, ms=5, mfc="none", label="outside")
ax.set_title(f"{out.sum()} of {len(t)} outside the 90% interval", loc="left", fontsize=9)
ax.spines[["top", "right"]].set_visible(False)

# sphinx_gallery_thumbnail_number = 2
