"""The table of a comparison: as plain data, text, CSV and LaTeX."""

from __future__ import annotations

import csv as csv_files
import io
import textwrap
from html import escape
from typing import Any

import numpy as np

from onlinegp.comparing.results import CONVERGED, COSTS, Comparison, Entry
from onlinegp.html_tables import table

UNITS = {"error": "dB", "density": "nats"}
WORDS = {"error": "error", "density": "log density"}
TITLES = {"error": "MSE [dB]", "density": "log density"}
WIDTH = 84  # width of the text below the table
SHORT = 100  # runs with fewer rows are too short
COLUMNS = ("behind the best", "95% covers", "converged", "centers", "us", "bytes")  # columns after the steady state


def figures(found: Comparison) -> list[dict[str, Any]]:
    """Return a dictionary of figures for each algorithm."""
    fronts = {cost: found.pareto(cost) for cost in COSTS}
    return [_row(found, entry, fronts) for entry in found.entries]


def _row(found: Comparison, entry: Entry, fronts: dict[str, list[str]]) -> dict[str, Any]:
    tuned = {"search_models": entry.tried, "search_rows": entry.search_rows}
    params = {"parameters": "; ".join(f"{name}={value!r}" for name, value in entry.params.items() if name != "engine")}
    if entry.broken:
        return {"algorithm": entry.name, "broken_runs": entry.broken, "why": entry.why} | tuned | params
    steady, behind = found.steady_state(entry.name), found.behind(entry.name)
    mean = {what: float(np.mean(entry.of(what))) for what in ("coverage", "size", "microseconds", "bytes")}
    return (
        {"algorithm": entry.name, "broken_runs": 0}
        | {name: float(value) for name, value in zip(("steady", "steady_low", "steady_high"), steady, strict=True)}
        | {name: float(value) for name, value in zip(("behind", "behind_low", "behind_high"), behind, strict=True)}
        | {"converged": found.convergence(entry.name)}
        | mean
        | {f"pareto_{cost}": entry.name in front for cost, front in fronts.items()}
        | tuned
        | params
    )


def described(found: Comparison) -> str:
    """Describe how the comparison was made."""
    s = found.settings
    tuned = (
        f"Tuned by {s.by} on {s.tuning_rows} other rows, with at most {s.effort} rows of trials per algorithm."
        if any(entry.tried for entry in found.entries)
        else "Nothing was tuned."
    )
    short = "" if s.rows >= SHORT else " They are too short for a steady state: use fewer and longer runs."
    where = "" if s.since == 0 else f" after row {s.since}"
    return (
        f"{len(s.seeds)} runs of {s.rows} rows.{short} Steady state: the last {s.steady} rows of each. The first row, "
        f"predicted before any row was learned, is not scored. Intervals: "
        f"{s.level:.0%}, Student's t over runs; behind the best: paired over runs. Converged: samples{where} until the "
        f"mean error of {s.window} rows is within {CONVERGED:g} dB of the steady state. {tuned} Processor time is "
        f"per sample. * marks the Pareto front: the algorithms that no other beats in both {WORDS[s.by]} and time."
    )


def text(found: Comparison) -> str:
    """Return the table as text, and a description of how it was made."""
    titles, rows = _titles(found), [_cells(found, row) for row in figures(found)]
    rooms = [max(len(title), *(len(row[i]) for row in rows)) for i, title in enumerate(titles)]
    lines = [
        "  ".join(
            f"{c:<{room}}" if i == 0 else f"{c:>{room}}" for i, (c, room) in enumerate(zip(row, rooms, strict=True))
        )
        for row in (titles, *rows)
    ]
    notes = [textwrap.fill(note, WIDTH) for note in (*broken(found), described(found))]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], "", *notes])


def html(found: Comparison) -> str:
    """Return the table as HTML, for a notebook, and a description of how it was made."""
    notes = "".join(f"<p>{escape(note)}</p>" for note in (*broken(found), described(found)))
    return table(_titles(found), [_cells(found, row) for row in figures(found)]) + notes


def _titles(found: Comparison) -> list[str]:
    return ["algorithm", f"{TITLES[found.settings.by]}, steady", *COLUMNS, "search rows"]


def broken(found: Comparison) -> list[str]:
    """Return the reason for each algorithm that is not ranked."""
    return [f"{entry.name} diverged. First reason: {entry.why}" for entry in found.entries if entry.broken]


def _cells(found: Comparison, row: dict[str, Any]) -> list[str]:
    """Return the cells of an algorithm in the printed table."""
    if row["broken_runs"]:
        of = f"diverged in {row['broken_runs']} of {len(found.settings.seeds)} runs"
        return [row["algorithm"], of, *([""] * len(COLUMNS)), str(row["search_rows"])]
    return [
        row["algorithm"] + ("*" if row["pareto_microseconds"] else ""),
        _within(row["steady"], row["steady_high"]),
        _within(row["behind"], row["behind_high"]) if row["behind"] else "-",
        f"{row['coverage']:.1%}",
        "never" if row["converged"] is None else str(row["converged"]),
        f"{row['size']:.0f}",
        f"{row['microseconds']:.2f}",
        f"{row['bytes']:.0f}",
        str(row["search_rows"]),
    ]


def _within(value: float, high: float) -> str:
    """Return a value +- half the width of its interval. Return only the value if it is infinite (zero error in dB)."""
    return f"{value:.2f} +- {high - value:.2f}" if np.isfinite(value) else f"{value:.2f}"


def csv(found: Comparison) -> str:
    """Return the table as CSV, with empty fields for missing values."""
    rows = figures(found)
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv_files.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def latex(found: Comparison) -> str:
    """Return the table as LaTeX, with its description as a comment."""
    unit = UNITS[found.settings.by]
    titles = ["algorithm", f"steady state [{unit}]", f"behind the best [{unit}]", "95\\% covers", "converged"]
    titles += ["centers", r"time [$\mu$s]", "bytes"]
    lines = [
        r"\begin{tabular}{l" + "r" * (len(titles) - 1) + "}",
        r"\toprule",
        " & ".join(titles) + r" \\",
        r"\midrule",
    ]
    for row in figures(found):
        cells = _cells(found, row)[:-1]
        cells = [_escaped(cell).replace("+-", r"$\pm$") for cell in cells]
        if row["broken_runs"]:
            cells = [cells[0], rf"\multicolumn{{{len(titles) - 1}}}{{l}}{{{cells[1]}}}"]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*(f"% {note}" for note in (described(found), *broken(found))), *lines]) + "\n"


def _escaped(cell: str) -> str:
    """Escape a text for LaTeX, with mathematical minus signs."""
    for letter in "&%$#_{}":
        cell = cell.replace(letter, f"\\{letter}")
    return f"${cell[0]}$" + cell[1:] if cell.startswith("-") and len(cell) > 1 else cell
