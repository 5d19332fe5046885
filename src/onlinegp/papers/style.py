"""The style of all figures: one journal column wide, with colors that suit color-blind readers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from onlinegp.files.atomic import write_atomically

WIDTH = 3.5  # inches: one column
# Okabe and Ito, "Color universal design", 2008; without yellow, which is hard to see on white
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"

CURVES: dict[str, dict[str, Any]] = {
    "KLMS": {"color": BLUE, "lw": 2.6, "alpha": 0.55},
    "beta = 0": {"color": BLACK, "lw": 0.9, "ls": (0, (1.2, 1.2))},
    "beta auto": {"color": GREEN, "lw": 1.5},
    "beta = 0.01": {"color": SKY, "lw": 1.2, "ls": (0, (5, 1.5))},
    "beta = 0.1": {"color": PURPLE, "lw": 1.2, "ls": (0, (5, 1.5, 1, 1.5))},
    "KNLMS": {"color": ORANGE, "lw": 2.6, "alpha": 0.75},
    "beta = 1": {"color": VERMILION, "lw": 1.0, "ls": (0, (3, 1.5))},
    "KRLS-T": {"color": BLACK, "lw": 1.5},
    "KRLS-T, no forgetting": {"color": GREY, "lw": 1.2, "ls": "-."},
}

LOOK: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.color": "0.9",
    "svg.hashsalt": "onlinegp",  # the same numbers give the same bytes
}


def figure(height: float, *, rows: int = 1, **shared: Any) -> tuple[Any, Any]:
    """Return a figure that is one column wide, and its axes, stacked vertically."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots(rows, 1, **shared)
    return figure, axes


def title(ax: Any, text: str) -> None:
    """Set a left-aligned title in the size of the labels."""
    ax.set_title(text, loc="left", fontsize=LOOK["axes.titlesize"])


def label(name: str) -> str:
    """Return the name of a curve for the legend."""
    return name.replace("beta auto", r"$\beta$ auto").replace("beta = ", r"$\beta = $")


def legend(figure: Any, ax: Any, ncols: int) -> None:
    """Put the legend of `ax` below all axes, where it covers nothing."""
    import matplotlib as mpl

    with mpl.rc_context(LOOK):
        handles, labels = ax.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=ncols, frameon=False, handlelength=2.6)


def render(figure: Any, kind: str) -> bytes:
    """Return the figure as the bytes of a "png" or an "svg" file."""
    import matplotlib as mpl

    out = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context(LOOK):
        figure.savefig(out, format=kind, dpi=300, metadata=metadata)
    return out.getvalue()


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write the figure as PNG and SVG, and return their paths."""
    paths = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        write_atomically(path, [render(figure, path.suffix[1:])])
    return paths
