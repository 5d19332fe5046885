"""
A time series with drift
========================

The daily load of a small grid: a cycle of 24 hours whose shape and height change over the weeks. What was true a month
ago is not true now, and a model that never forgets averages over all of it.
"""

import numpy as np
from matplotlib import pyplot as plt

import onlinegp as ogp
from onlinegp import plots
from onlinegp.datasets import embed
from onlinegp.kernels import RBF, Periodic
from onlinegp.metrics import coverage

# %%
# Eight weeks, a value an hour. The morning peak fades, the evening peak grows, the level climbs.

rng = np.random.default_rng(0)
t = np.arange(24 * 7 * 8)
weeks = t / (24 * 7)
morning = (1.0 - weeks / 8) * np.exp(-0.5 * ((t % 24 - 8) / 2.0) ** 2)
evening = (0.5 + weeks / 5) * np.exp(-0.5 * ((t % 24 - 19) / 2.5) ** 2)
load = morning + evening + 0.1 * weeks + 0.08 * rng.standard_normal(len(t))

figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
ax.plot(weeks, load, color=plots.BLUE, lw=0.6)
ax.set(xlabel="week", ylabel="load")
ax.spines[["top", "right"]].set_visible(False)

# %%
# Predict the load from the hour alone, with three memories. The periodic kernel says that midnight follows 23 hours;
# the constant lets the level be anything. A factor of 1 - 1 / n remembers some n samples.

hour = (t % 24)[:, None]
kernel = 1.0 * Periodic(length_scale=0.7, period=24.0) + 1.0
memories = {"everything": 1.0, "a week": 1 - 1 / 168, "ten hours": 0.9}
traces = {
    name: ogp.run(ogp.KRLST(kernel, noise=0.01, budget=24, forgetting=factor), hour, load)
    for name, factor in memories.items()
}
for name, trace in traces.items():
    late = slice(24 * 7, None)
    error = np.sqrt(np.mean((load - trace.mean)[late] ** 2))
    inside = coverage(load[late], trace.mean[late], trace.std[late])
    print(f"{name:11} error {error:.3f} (noise 0.080), {inside:.0%} inside the 95% interval")

# %%
# The errors along the weeks, and the last days with their intervals:

plots.learning_curves(load, traces, window=24 * 3)

# %%

plots.stream(load, traces["a week"], rows=slice(-96, None))

# %%
# The model that keeps everything is sure of an average that no day looks like:

plots.stream(load, traces["everything"], rows=slice(-96, None))

# %%
# **When forgetting does not help.** Give the model the last 24 values instead of the hour, and the drift is in its
# inputs. Predicting the change since the same hour of yesterday, forgetting gains nothing:

X, y = embed(load, 24)
yesterday = X[:, -1]  # the newest sample comes first
for name, factor in {"everything": 1.0, "a thousand hours": 0.999, "ten hours": 0.9}.items():
    model = ogp.KRLST(RBF(2.5), noise=0.02, budget=80, forgetting=factor)
    trace = ogp.run(model, X - yesterday[:, None], y - yesterday)
    error = np.sqrt(np.mean((y - yesterday - trace.mean)[500:] ** 2))
    print(f"{name:17} error {error:.3f}, log density {trace.log_density[500:].mean():5.2f}")

# sphinx_gallery_thumbnail_number = 3
