"""Two chaotic systems, integrated by the classical Runge-Kutta method of order four."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onlinegp.checks import Array, check_X, count, finite, non_negative, positive


def mackey_glass(
    n: int,
    *,
    tau: float = 30.0,
    production: float = 0.2,
    decay: float = 0.1,
    power: float = 10.0,
    interval: float = 6.0,
    step: float = 0.1,
    start: float = 1.2,
    discard: int = 100,
) -> Array:
    """Sample the Mackey-Glass delay equation.

    ::

        dx/dt = production x(t - tau) / (1 + x(t - tau)^power) - decay x(t)

    ``x`` is `start` up to time zero. Runge-Kutta also needs the delayed value halfway through a step. A cubic
    through the values and slopes at both ends of the step gives it and keeps order four.

    Parameters
    ----------
    n : int
        Number of samples.
    tau : float, default 30.0
        The delay: 17 is mildly chaotic, 30 is more chaotic.
    production, decay, power : float, default 0.2, 0.1, 10.0
        Coefficients of the equation.
    interval : float, default 6.0
        Time between two samples.
    step : float, default 0.1
        Time step of the integration; `tau` and `interval` are whole multiples of it.
    start : float, default 1.2
        The value of x up to time zero; at least zero.
    discard : int, default 100
        Number of first samples to discard while the system settles.

    Returns
    -------
    ndarray of shape (n,)

    References
    ----------
    M. C. Mackey and L. Glass, "Oscillation and chaos in physiological control systems", Science 197, 1977.
    """
    n, discard, h = count(n=n), _whole(discard), positive(step=step)
    delay = _steps(h, tau=positive(tau=tau))
    every = _steps(h, interval=positive(interval=interval))
    production, decay = non_negative(production=production), non_negative(decay=decay)
    power, start = positive(power=power), non_negative(start=start)

    x = [start] * (delay + 1)  # x[j] is the value at time (j - delay) h
    middle = [start] * delay  # middle[j] lies between x[j] and x[j + 1]
    slope = 0.0
    for j in range((discard + n - 1) * every):
        now, before, arriving = x[-1], slope, production * x[j] / (1.0 + x[j] ** power)
        slope = arriving - decay * now
        if j:
            middle.append((x[-2] + now) / 2 + h * (before - slope) / 8)
        halfway = production * middle[j] / (1.0 + middle[j] ** power)
        arrived = production * x[j + 1] / (1.0 + x[j + 1] ** power)
        k2 = halfway - decay * (now + h / 2 * slope)
        k3 = halfway - decay * (now + h / 2 * k2)
        k4 = arrived - decay * (now + h * k3)
        x.append(now + h / 6 * (slope + 2 * k2 + 2 * k3 + k4))
    return np.array(x[delay::every][discard:])


def lorenz(
    n: int,
    *,
    sigma: float = 10.0,
    rho: float = 28.0,
    beta: float = 8.0 / 3.0,
    interval: float = 0.01,
    step: float = 0.005,
    start: Sequence[float] = (1.0, 1.0, 1.0),
    discard: int = 1000,
) -> Array:
    """Sample the Lorenz system.

    ::

        dx/dt = sigma (y - x)      dy/dt = x (rho - z) - y      dz/dt = x y - beta z

    Parameters
    ----------
    n : int
        Number of samples.
    sigma, rho, beta : float, default 10, 28, 8/3
        Coefficients of the system.
    interval : float, default 0.01
        Time between two samples.
    step : float, default 0.005
        Time step of the integration; `interval` is a whole multiple of it.
    start : sequence of three floats, default (1, 1, 1)
        The state at time zero.
    discard : int, default 1000
        Number of first samples to discard while the system settles on its attractor.

    Returns
    -------
    ndarray of shape (n, 3)
        The states. Use one column as a series for :func:`embed`.

    References
    ----------
    E. N. Lorenz, "Deterministic nonperiodic flow", Journal of the Atmospheric Sciences 20, 1963.
    """
    n, discard, h = count(n=n), _whole(discard), positive(step=step)
    every = _steps(h, interval=positive(interval=interval))
    sigma, rho, beta = finite(sigma=sigma), finite(rho=rho), finite(beta=beta)
    state = check_X([start], name="start")[0].tolist()
    if len(state) != 3:
        raise ValueError(f"start must be three numbers (x, y, z), got {len(state)}: {state}.")

    def slope(x: float, y: float, z: float) -> tuple[float, float, float]:
        return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

    states = [tuple(state)]
    for _ in range((discard + n - 1) * every):
        x, y, z = states[-1]
        a1, b1, c1 = slope(x, y, z)
        a2, b2, c2 = slope(x + h / 2 * a1, y + h / 2 * b1, z + h / 2 * c1)
        a3, b3, c3 = slope(x + h / 2 * a2, y + h / 2 * b2, z + h / 2 * c2)
        a4, b4, c4 = slope(x + h * a3, y + h * b3, z + h * c3)
        states.append(
            (
                x + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4),
                y + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4),
                z + h / 6 * (c1 + 2 * c2 + 2 * c3 + c4),
            )
        )
    return np.array(states[::every][discard:])


def _steps(step: float, **argument: float) -> int:
    """Return the keyword argument as a number of steps; raise a ValueError if it is not a whole number of steps."""
    ((name, span),) = argument.items()
    steps = round(span / step)
    if steps < 1 or not math.isclose(steps * step, span, rel_tol=1e-9):
        better = span / math.ceil(span / step)
        raise ValueError(f"{name} must be a whole multiple of step = {step}, got {span}. Use step={better:.17g}.")
    return steps


def _whole(discard: int) -> int:
    return 0 if discard == 0 else count("Use 0 to keep every sample.", discard=discard)
