"""Pages that run: each Python block of a Markdown page is executed, in order, in one namespace for the page.

So are the commands `$ onlinegp ...` of its console blocks. What a block prints and draws is shown below it, so a page
never shows what the code does not give. An error fails the build. The tests use `run` too.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = "$ onlinegp "
DPI = 120


class Ran(NamedTuple):
    """A block that was executed: where it is, what it printed and the figures that it drew."""

    match: re.Match[str]
    printed: str
    figures: list[Any]


class Printed(io.TextIOWrapper):
    """Standard output as text; commands write tables to its `buffer`."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def getvalue(self) -> str:
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


def run(text: str, name: str) -> Iterator[Ran]:
    """Execute the blocks of a page in a folder of their own; line numbers in errors are the page's."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder:
        for match in BLOCK.finditer(text):
            kind, code = match.groups()
            printed = Printed()
            with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
                if kind == "python":
                    above = "\n" * text.count("\n", 0, match.start(2))
                    exec(compile(above + code, name, "exec"), names)
                else:
                    with contextlib.redirect_stderr(printed):
                        _call(code, printed)
            figures = _figures()
            yield Ran(match, printed.getvalue(), figures)
            if figures:
                sys.modules["matplotlib.pyplot"].close("all")


def _call(block: str, printed: Printed) -> None:
    """Run the commands of a console block; what is not ours is left alone."""
    from onlinegp.cli import main

    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith(COMMAND) and main(shlex.split(line.removeprefix(COMMAND), comments=True)) != 0:
            raise RuntimeError(f"{line} failed: {printed.getvalue()}")


def _figures() -> list[Any]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return [] if pyplot is None else [pyplot.figure(number) for number in pyplot.get_fignums()]


def show(app: Any, page: str, source: list[str]) -> None:
    """Put below each block of a page what it printed and drew."""
    if Path(app.env.doc2path(page)).suffix != ".md" or not BLOCK.search(source[0]):
        return
    text, shown, last, number = source[0], [], 0, 0
    folder = Path(app.srcdir) / "generated" / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for ran in run(text, f"{page}.md"):
        shown.append(text[last : ran.match.end()])
        last = ran.match.end()
        if ran.printed.strip():
            shown.append(f"\n\n```{{code-block}} text\n:class: output\n\n{ran.printed.rstrip()}\n```\n")
        for figure in ran.figures:
            number += 1
            path = folder / f"{page.replace('/', '-')}-{number}.png"
            figure.savefig(path, dpi=DPI)
            width = round(DPI * figure.get_figwidth())  # with a width, a click opens the picture in full: for phones
            options = f":alt: What the code above draws\n:width: {width}px"
            shown.append(f"\n\n```{{image}} /generated/figures/{path.name}\n{options}\n```\n")
    source[0] = "".join(shown) + text[last:]


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", show)
    return {"parallel_read_safe": True}
