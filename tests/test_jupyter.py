"""Progress bars and what is shown in a Jupyter notebook, in a kernel of its own."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from onlinegp import progress

SHOWN = """
import numpy as np, onlinegp as ogp
from onlinegp.progress import shown
X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
for _ in shown(range(3), 3, "counting", show=True):
    pass
model = ogp.KRLST().fit([{"a": a, "b": b} for a, b in X.tolist()], X[:, 0])
model
"""


def test_a_bar_is_visible_in_a_kernel_and_not_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: False))
    assert not progress.is_visible()
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert progress.is_visible()
    shell.config = {}  # IPython on a terminal
    assert not progress.is_visible()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not progress.is_visible()


@pytest.mark.parametrize("widgets", [True, False])
def test_a_real_kernel_shows_bars_and_models(widgets):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("ipywidgets")
    hide = "" if widgets else "import onlinegp.progress\nonlinegp.progress.find_spec = lambda name: None\n"
    cell = nbformat.v4.new_code_cell(hide + SHOWN)
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=[cell]), timeout=60, kernel_name="python3").execute()
    kinds = [kind for output in cell.outputs for kind in output.get("data", {})]
    text = "".join(output.get("text", "") for output in cell.outputs)
    assert ("application/vnd.jupyter.widget-view+json" in kinds) == widgets
    assert ("counting" in text) == (not widgets)
    assert "Warning" not in text
    assert "KRLST</strong>: 60 rows of a, b" in cell.outputs[-1]["data"]["text/html"]
