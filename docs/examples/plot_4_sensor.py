"""
Calibrating a cheap sensor
==========================

A cheap gas sensor stands next to a reference station for a few weeks. Its reading depends on the gas, but also on
temperature and humidity, and it ages. We learn the correction online, from a data frame, and ask when the sensor may
be trusted alone.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import onlinegp as ogp
from onlinegp import plots
from onlinegp.kernels import RBF, Linear

# %%
# Forty days, one row per hour: the sensor's reading, temperature, humidity, and the reference.

rng = np.random.default_rng(0)
hours = pd.date_range("2026-03-01", periods=24 * 40, freq="h")
t = np.arange(len(hours))
gas = 40 + 15 * np.sin(2 * np.pi * (t - 7) / 24) + 10 * np.sin(2 * np.pi * t / 170) + 3 * rng.standard_normal(len(t))
temperature = 12 + 8 * np.sin(2 * np.pi * (t - 10) / 24) + 4 * np.sin(2 * np.pi * t / 400)
humidity = 70 - 2 * (temperature - 12) + 5 * rng.standard_normal(len(t))
aging = 1.0 - 0.25 * t / len(t)
reading = 0.8 * aging * gas * (1 + 0.03 * (temperature - 12)) + 0.4 * (humidity - 70) + 6 + rng.standard_normal(len(t))
data = pd.DataFrame(
    {"reading": reading, "temperature": temperature, "humidity": humidity, "reference": gas}, index=hours
)
print(data.head(3).round(1))

# %%
# One kernel for what is nearly linear and for what bends; inputs and target scaled by the first three days.

first = data.iloc[:72]
scaled = (data - first.mean()) / first.std()
inputs = scaled[["reading", "temperature", "humidity"]]
kernel = 1.0 * Linear() + 0.5 * RBF([3.0, 3.0, 5.0])
model = ogp.KRLST(kernel, noise=0.02, budget=60, forgetting=0.998)

# %%
# For thirty days the reference teaches. The trace is a frame, with the hours as its index:

known, alone = inputs.iloc[: 24 * 30], inputs.iloc[24 * 30 :]
trace = ogp.run(model, known, scaled["reference"].iloc[: len(known)])
print(trace.to_frame()[["mean", "lower", "upper"]].tail(3).round(2))

# %%
# Then the sensor is alone. Columns go by name, so their order does not matter.

mean, std = model.predict(alone[["humidity", "reading", "temperature"]], return_std=True)
spread, center = first["reference"].std(), first["reference"].mean()
corrected, band = center + spread * mean, 1.96 * spread * std
truth = data["reference"].loc[alone.index]

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
days = np.arange(len(alone)) / 24
ax.fill_between(days, corrected - band, corrected + band, color=plots.BLUE, alpha=0.18, lw=0, label="95% interval")
ax.plot(days, data["reading"].loc[alone.index], color=plots.ORANGE, lw=1.2, label="as read")
ax.plot(days, corrected, color=plots.BLUE, lw=1.6, label="corrected")
ax.plot(days, truth, "k.", ms=2.5, label="reference")
ax.set(xlabel="days alone", ylabel="gas")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize="small", ncols=4, loc="lower right", bbox_to_anchor=(1.0, 1.0))

# %%
# How long may it stay alone? The sensor continues to age, and the model cannot know: its intervals do not widen with
# time unless time is among the inputs. The errors show it.

error = np.abs(truth - corrected).to_numpy().reshape(-1, 24).mean(axis=1)
inside = (np.abs(truth - corrected) < band).to_numpy().reshape(-1, 24).mean(axis=1)
for day in (0, 4, 9):
    print(f"day {day + 1:2d} alone: mean error {error[day]:.2f}, {inside[day]:.0%} inside the 95% interval")
