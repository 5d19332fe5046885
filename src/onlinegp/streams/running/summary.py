"""Summarize a run, as JSON and as text."""

from __future__ import annotations

from time import monotonic
from typing import Any

from onlinegp.models.alarms.constants import Constants
from onlinegp.streams.running.predict_then_learn import size_of
from onlinegp.streams.running.run import Job

SILENT = int(Constants().silent)
UNSCORED = "without a target, or predicted before the first target"


def summary(job: Job) -> dict[str, Any]:
    """Return the figures of a finished run."""
    seconds = monotonic() - job.began - job.idle
    odd: dict[str, Any] = {} if not job.later.n else {"later": job.later.summary()}
    odd |= {} if job.flags is None else {"events": job.flags.counts}
    if job.surprises is not None:
        odd["surprises"] = job.surprises.rows
    if job.commands is not None:
        odd["commands"] = {"done": job.commands.done, "failed": job.commands.failed}
    return {
        "rows": job.rows,
        "rejected": job.rejects.count,
        **job.models.figures(),
        **job.score.summary(),
        "centers": size_of(job.model),
        "tuning_seconds": job.idle,
        "rows_per_second": (job.rows - job.start_rows) / max(seconds, 1e-9),
        **odd,
    }


def summary_lines(figures: dict[str, Any]) -> list[str]:
    rejected = f", {figures['rejected']} rejected" if figures["rejected"] else ""
    rejected += f", {figures['late']} late" if figures.get("late") else ""
    rejected += f", {figures['keys']} keys" if "keys" in figures else ""
    centers = "" if "keys" in figures else f", {figures['centers']} centers"  # one model
    lines = [f"{figures['rows']} rows{rejected}, {figures['rows_per_second']:,.0f} per second{centers}"]
    if not figures["scored"]:
        return [*lines, f"no row was scored: {UNSCORED}"]
    others = figures["rows"] - figures["scored"]
    without = f" ({others} not: {UNSCORED})" if others else ""
    lines += [_found(figures)] if "events" in figures else []
    if figures.get("commands", {}).get("done"):
        lines.append(f"commands on an event: {figures['commands']['done']}, {figures['commands']['failed']} failed")
    lines.append(f"scored {figures['scored']} rows{without}: {_scores(figures)}")
    if "later" in figures:
        later = figures["later"]
        lines.append(f"of these, the last {later['scored']}, which the model predicted: {_scores(later)}")
    return lines


def _scores(figures: dict[str, Any]) -> str:
    nmse = "none (the target is constant)" if figures["nmse_db"] is None else f"{figures['nmse_db']:.2f} dB"
    return (
        f"nMSE {nmse}, RMSE {figures['rmse']:.4g}, log density {figures['log_density']:.3f}, "
        f"{figures['level']:.0%} intervals cover {figures['coverage']:.1%}"
    )


def _found(figures: dict[str, Any]) -> str:
    found = ", ".join(f"{count} {kind}" for kind, count in figures["events"].items() if count)
    if not found and figures["rows"] < SILENT * figures.get("keys", 1):
        return f"events: none; the first {SILENT} rows of a series open no event"
    return f"events: {found or 'none'}"
