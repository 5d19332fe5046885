"""
The inverse model of a robot arm
================================

To move as planned, an arm's controller needs the torques that give the wanted accelerations. The equations are known;
masses and friction are not, and change when the hand picks something up. So the model is learned while the arm moves.

Two joints, six inputs (angles, velocities, accelerations), two outputs (torques): one dictionary serves both.
"""

import numpy as np
from matplotlib import pyplot as plt

import onlinegp as ogp
from onlinegp import plots
from onlinegp.kernels import RBF, Linear

# %%
# The arm, a double pendulum with a load at its hand, and friction in its joints.


def torques(q, dq, ddq, load):
    """Lagrange's equations for links of unit length and mass, and a load at the hand."""
    c2, s2 = np.cos(q[:, 1]), np.sin(q[:, 1])
    a, b, d = 5 / 3 + 2 * load, 0.5 + load, 1 / 3 + load
    t1 = (a + 2 * b * c2) * ddq[:, 0] + (d + b * c2) * ddq[:, 1] - b * s2 * dq[:, 1] * (2 * dq[:, 0] + dq[:, 1])
    t2 = (d + b * c2) * ddq[:, 0] + d * ddq[:, 1] + b * s2 * dq[:, 0] ** 2
    g1 = 9.81 * ((1.5 + load) * np.cos(q[:, 0]) + b * np.cos(q.sum(axis=1)))
    g2 = 9.81 * b * np.cos(q.sum(axis=1))
    return np.stack([t1 + g1, t2 + g2], axis=1) + 0.5 * np.tanh(5 * dq)


rng = np.random.default_rng(0)
t = np.arange(2400) / 50  # 50 samples per second
waves = [(0.6, 0.31, 0.0), (0.4, 0.83, 1.0), (0.8, 0.47, 2.0), (0.3, 1.13, 0.5)]


def motion(waves):
    w = [(a, 2 * np.pi * f, p) for a, f, p in waves]
    position = sum(a * np.sin(f * t + p) for a, f, p in w)
    velocity = sum(a * f * np.cos(f * t + p) for a, f, p in w)
    return position, velocity, sum(-a * f**2 * np.sin(f * t + p) for a, f, p in w)


joints = [motion(waves[:2]), motion(waves[2:])]
q, dq, ddq = (np.stack([joint[i] for joint in joints], axis=1) for i in range(3))
load = np.where(np.arange(len(t)) < 1200, 0.0, 0.5)  # half a link's mass, picked up after 24 seconds
Y = torques(q, dq, ddq, load) + 0.2 * rng.standard_normal((len(t), 2))
X = np.hstack([q, dq, ddq]) / np.hstack([q, dq, ddq]).std(axis=0)

# %%
# A linear part for what is linear in the accelerations, a smooth part for the rest. With forgetting and without:

kernel = 30.0 * RBF(2.5) + 3.0 * Linear()
scale = Y[:1200].std(axis=0)
models = {
    "no forgetting": ogp.KRLST(kernel, noise=0.002, budget=100),
    "0.995": ogp.KRLST(kernel, noise=0.002, budget=100, forgetting=0.995),
}
traces = {name: ogp.run(model, X, Y / scale) for name, model in models.items()}

first = {name: trace.output(0) for name, trace in traces.items()}
plots.learning_curves(Y[:, 0] / scale[0], first, window=50)

# %%
# Both learn the free arm. When it picks up the load, the model without forgetting is sure of what is no longer true.

for name, trace in traces.items():
    error = np.sqrt(np.mean((Y / scale - trace.mean)[1500:] ** 2, axis=0)) * scale
    inside = (np.abs(Y / scale - trace.mean) < 1.96 * trace.std)[1500:].mean()
    print(f"{name:14} error {error[0]:.2f} and {error[1]:.2f} Nm (noise 0.20), {inside:.0%} inside 95%")

# %%
# Torques of the first joint around the moment when the load is picked up:

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.axvline(1200, color="0.5", lw=0.8, ls="--")
plots.stream(Y[:, 0] / scale[0], first["0.995"], rows=slice(1140, 1340), ax=ax)
ax.spines[["top", "right"]].set_visible(False)

# sphinx_gallery_thumbnail_number = 2
