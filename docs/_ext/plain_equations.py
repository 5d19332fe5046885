"""Docstrings as they are written: an indented equation is shown as it stands, and |k| and alpha_ are no references."""

from __future__ import annotations

import re
from typing import Any

SECTION = re.compile(r"^-{3,}\s*$")


def mend(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make literal blocks of the indented ones that come before the first section, and escape bars."""
    end = next((i - 1 for i, line in enumerate(lines) if i and SECTION.match(line)), len(lines))
    mended: list[str] = []
    literal = False
    for i, line in enumerate(lines[:end]):
        indented, after_blank = line.startswith("    "), i == 0 or not lines[i - 1].strip()
        if indented and after_blank and not literal:
            literal = True
            if not any(previous.strip().endswith("::") for previous in mended[-2:]):
                mended += ["::", ""]
        elif line.strip() and not indented:
            literal = False
        mended.append(line if literal else _escaped(line))
    lines[:] = mended + [_escaped(line, names=not line.startswith("    ")) for line in lines[end:]]


def _escaped(line: str, names: bool = False) -> str:
    """Escape bars and trailing underscores, which would be references, outside of backquotes.

    Of the names of parameters numpydoc escapes the underscores itself.
    """
    parts = line.split("`")
    parts[::2] = [re.sub(r"\|" if names else r"(?<=\w)_(?!\w)|\|", r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", mend, priority=400)  # before numpydoc's
    return {"parallel_read_safe": True}
