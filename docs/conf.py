"""The documentation: `make docs` builds it, and a warning is an error."""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import metadata
from pathlib import Path

import matplotlib

from onlinegp import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
matplotlib.use("Agg")
warnings.filterwarnings("ignore", message="onlinegp runs on its Python engine")

project = "onlinegp"
author = "The onlinegp developers"
copyright = f"2026, {author}"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "catalogue",
    "executed",
    "mathml",
    "plain_equations",
]
exclude_patterns = ["_build", "examples", "generated", "images"]
highlight_language = "text"
default_role = "literal"  # `name` in a docstring is code
toc_object_entries_show_parents = "hide"

# Markdown
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# Docstrings
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
autodoc_mock_imports = ["pyspark"]  # half a gigabyte, of which the pages need nothing

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r".*\.py",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "thumbnail_size": (500, 350),
    "min_reported_time": 1e9,
    "write_computation_times": False,
}

# The repository, if pyproject.toml names one under [project.urls]
addresses = (entry.split(", ", 1) for entry in metadata("onlinegp").get_all("Project-URL") or ())
repository = {label.lower(): address for label, address in addresses}.get("repository")
links = [] if repository is None else [{"name": "Repository", "url": repository, "icon": "fa-solid fa-code-branch"}]

# Looks
html_theme = "pydata_sphinx_theme"
html_title = f"onlinegp {release}"
html_static_path = ["_static"]
html_css_files = ["onlinegp.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "onlinegp"},
    "show_toc_level": 2,
    "icon_links": links,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {
    name: []
    for name in ("index", "install", "tutorial", "catalogue", "comparisons", "glossary", "contributing", "changelog")
}
