"""
From scikit-learn: raw columns, one estimator, a stream
=======================================================

For a data scientist who knows scikit-learn: house prices arrive one by one, in raw units, and the market changes. One
estimator with `fit` and `predict` gives the price and how far it may be wrong.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

import onlinegp as ogp
from onlinegp import plots

# %%
# Area, age and distance to the center; the price per square meter rises by half over the stream. The noise grows with
# the price.

rng = np.random.default_rng(0)
n = 1000
area, age, distance = rng.uniform(30, 200, n), rng.uniform(0, 80, n), rng.uniform(0, 20, n)
market = 1.0 + 0.5 * np.arange(n) / n
price = market * (3000 * area * np.exp(-distance / 15) * (1 - age / 200))
price *= np.exp(0.08 * rng.standard_normal(n))
X = np.column_stack([area, age, distance])

# %%
# `Auto` needs no scaling and no grid search. It predicts the logarithm of the price, as is usual for prices, and
# forgets old sales. The forest is fitted again every 250 rows, on all rows before.

y = np.log(price)
trace = ogp.run(ogp.Auto(rows=200, earliest=100, forgetting=0.998), X, y)
forest = np.full(n, np.nan)
for start in range(250, n, 250):
    part = slice(start, start + 250)
    forest[part] = RandomForestRegressor(50, random_state=0).fit(X[:start], y[:start]).predict(X[part])

late = slice(250, None)
for name, mean in {"Auto": trace.mean, "forest, refitted": forest}.items():
    print(f"{name:17} typical error {np.exp(np.median(np.abs(y - mean)[late])) - 1:.1%}")
lower, upper = trace.interval(0.9)
print(f"{np.mean(((lower <= y) & (y <= upper))[late]):.1%} of the prices inside the 90% interval of Auto")

# %%
# The last sales, each as it was predicted before it was known:

rows = np.arange(n - 60, n)
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.vlines(rows, np.exp(lower[rows]) / 1e3, np.exp(upper[rows]) / 1e3, color=plots.BLUE, alpha=0.3, lw=5)
ax.plot(rows, price[rows] / 1e3, "k.", ms=5)
ax.set(xlabel="sale", ylabel="price [thousands]", title="90% intervals, and the prices")
ax.spines[["top", "right"]].set_visible(False)

# %%
# It is an estimator like any other: `clone`, pipelines, `cross_val_score` and `GridSearchCV` work with it.

print(clone(ogp.KRLST(noise=0.1)))
