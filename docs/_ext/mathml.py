"""Equations as MathML, which browsers draw by themselves: no script, no download, no LaTeX."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml


def inline(writer: Any, node: Any) -> None:
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise SkipNode


def block(writer: Any, node: Any) -> None:
    writer.body.append(f'<div class="equation">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True}
