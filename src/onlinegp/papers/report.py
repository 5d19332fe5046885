"""Write a self-contained HTML page with figures, the statements of the papers, and whether they hold."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; margin: 2rem auto; max-width: 72rem;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; }
.pair { display: flex; gap: 2rem; flex-wrap: wrap; align-items: flex-start; }
.pair img { width: 27rem; max-width: 100%; height: auto; } .pair > div { flex: 1; min-width: 20rem; }
.claim { margin: 0 0 1rem; padding-left: .8rem; border-left: 4px solid #0072B2; }
.claim.not { border-color: #D55E00; } .claim p { margin: .15rem 0; }
.verdict { font-weight: 600; color: #0072B2; } .not .verdict { color: #B34700; } .by { color: #555; }
.warning { background: #fdf3dc; padding: .6rem .8rem; } details { margin: .8rem 0; }
table { border-collapse: collapse; font-size: .85rem; } td, th { padding: .15rem .6rem; text-align: left;
       border-bottom: 1px solid #eee; vertical-align: top; } td.number { text-align: right;
       font-variant-numeric: tabular-nums; } td { overflow-wrap: anywhere; }
"""


@dataclass(frozen=True)
class Section:
    """The part of the page about one experiment: its paper, title, results, tables by caption, and picture (SVG)."""

    paper: str
    title: str
    result: dict[str, Any]
    tables: dict[str, dict[str, dict[str, Any]]]
    picture: bytes


def page(results: dict[str, Any], sections: Sequence[Section]) -> str:
    """Return the page."""
    data = results["data"]
    warning = ""
    if data is not None and data["stand_in"]:
        warning = (
            '<p class="warning">No KIN40K file was given: figure 2 and the choice of beta were run on a simulated '
            "robot arm that is about as hard. Levels differ from the paper's; <code>--kin40k FILE</code> uses the "
            "real data.</p>"
        )
    every = [claim for one in results["experiments"].values() for claim in one["claims"]]
    holds = [claim["holds"] for claim in every if claim["by"] == "paper"]
    papers = list(dict.fromkeys(section.paper for section in sections))
    title = "The paper, reproduced" if len(papers) == 1 else "The papers, reproduced"
    of = "the paper" if len(papers) == 1 else "the papers"
    statements, hold = "statement" if len(holds) == 1 else "statements", "holds" if sum(holds) == 1 else "hold"
    summary = f"<p>Of {len(holds)} {statements} of {of}, {sum(holds)} {hold} here."
    summary += f" onlinegp {escape(results['version'])}, seed {results['seed']}.</p>"
    body = "\n".join(
        f"<p>{escape(paper)}</p>\n" + "\n".join(_section(one) for one in sections if one.paper == paper)
        for paper in papers
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body>"
        f"<h1>{title}</h1>{summary}{warning}\n{body}</body></html>\n"
    )


def _section(section: Section) -> str:
    result, title = section.result, escape(section.title)
    source = "data:image/svg+xml;base64," + base64.b64encode(section.picture).decode("ascii")
    note = f"<p>{escape(result['note'])}</p>" if "note" in result else ""
    tables = "".join(_table(caption, rows) for caption, rows in section.tables.items())
    return (
        f'<section><h2>{title}</h2>{note}<div class="pair"><img src="{source}" alt="{title}">'
        f"<div>{''.join(map(_claim, result['claims']))}</div></div>{tables}"
        f"<details><summary>Every setting</summary>{_settings(result['settings'])}</details></section>"
    )


def _claim(claim: dict[str, Any]) -> str:
    who = "The paper says" if claim["by"] == "paper" else "Beyond the paper"
    kind, verdict = ("", "Holds here.") if claim["holds"] else (" not", "Does not hold here.")
    return (
        f'<div class="claim{kind}"><p><span class="by">{who}:</span> {escape(claim["says"])}</p>'
        f'<p><span class="verdict">{verdict}</span> {escape(claim["measured"])}</p></div>'
    )


def _table(caption: str, rows: dict[str, dict[str, Any]]) -> str:
    columns = list(next(iter(rows.values())))
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr><td>{escape(name)}</td>" + "".join(f'<td class="number">{_cell(row[c])}</td>' for c in columns) + "</tr>"
        for name, row in rows.items()
    )
    return f"<p>{escape(caption)}:</p><table><tr><th></th>{head}</tr>{body}</table>"


def _cell(value: float | int | None) -> str:
    return "never" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def _settings(settings: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{escape(str(key))}</td><td>{_settings(value) if isinstance(value, dict) else escape(str(value))}</td>"
        "</tr>"
        for key, value in settings.items()
    )
    return f"<table>{rows}</table>"
