"""Draw docs/images/example.png: the README's example, run as it stands there. Takes a second."""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.figure import Figure

HERE = Path(__file__).parent


def readme_example() -> str:
    """Return the first Python block of the README."""
    text = (HERE.parents[1] / "README.md").read_text()
    return re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)


def draw(names: dict) -> Figure:
    x, y, grid, mean, lower, upper = (names[key] for key in ("x", "y", "grid", "mean", "lower", "upper"))
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(grid[:, 0], lower, upper, color="0.87", label="95% interval")
    axes.plot(x[:, 0], y, ".", color="0.45", ms=3, label="data")
    axes.plot(grid[:, 0], mean, color="#0072B2", lw=1.8, label="mean")
    axes.set(xlabel="input", ylabel="output", ylim=(58, 84))
    axes.margins(x=0)
    axes.legend(ncols=3, loc="upper center", fontsize=9)
    return figure


if __name__ == "__main__":
    names: dict = {}
    exec(readme_example(), names)
    draw(names).savefig(HERE / "example.png", dpi=130)
