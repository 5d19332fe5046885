"""
Channel equalization
====================

A modem sends +1 and -1. The channel smears each symbol into the next ones, an amplifier bends the sum, and noise is
added. The receiver is to say what was sent, and learns as it goes from symbols that it knows.

A linear equalizer cannot undo the amplifier. A kernel one can, and says how sure it is of every symbol.
"""

import numpy as np
from matplotlib import pyplot as plt

import onlinegp as ogp
from onlinegp import plots
from onlinegp.kernels import RBF, Linear

# %%
# The channel: two taps, a quadratic amplifier, noise. The equalizer sees five received samples around each symbol.

rng = np.random.default_rng(1)
symbols = rng.choice([-1.0, 1.0], 3000)
smeared = symbols + 0.5 * np.roll(symbols, 1)
received = smeared - 0.7 * smeared**2 + 0.25 * rng.standard_normal(3000)
X = np.stack([np.roll(received, shift) for shift in (-2, -1, 0, 1, 2)], axis=1)[2:-2]
y = symbols[2:-2]

# %%
# Three equalizers. The linear one is a Gaussian process too, with a linear kernel: recursive least squares.

models = {
    "linear": ogp.KRLST(Linear() + 1.0, noise=0.3, budget=10),
    "QKLMS": ogp.QKLMS(RBF(2.0), step=0.3, radius=1.0),
    "KRLS-T": ogp.KRLST(RBF(2.0), noise=0.1, budget=80),
}
traces = {name: ogp.run(model, X, y) for name, model in models.items()}
for name, trace in traces.items():
    wrong = np.sign(trace.mean[1000:]) != y[1000:]
    print(f"{name:8} {trace.size[-1]:4d} centers, {wrong.mean():6.2%} of the symbols wrong")

# %%
# The error along the stream:

plots.learning_curves(y, traces, window=200)

# %%
# What is a confident symbol worth? Let the receiver ask again for those nearest to zero, in units of its std.

trace = traces["KRLS-T"]
wrong = (np.sign(trace.mean) != y)[1000:]
doubt = (np.abs(trace.mean) / trace.std)[1000:]
order = np.argsort(doubt)
asked = np.linspace(0, 0.2, 50)
left = [wrong[order[int(share * len(order)) :]].mean() for share in asked]

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.plot(100 * asked, 100 * np.array(left), color=plots.BLUE, lw=1.8)
ax.set(xlabel="symbols asked for again [%]", ylabel="wrong among the others [%]", ylim=(0, None))
ax.spines[["top", "right"]].set_visible(False)
