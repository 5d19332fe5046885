"""A release: the version said once, workflows that parse, and a package that installs into an empty environment."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import onlinegp

ROOT = Path(__file__).parents[1]
NEEDED = ("numpy", "scipy", "threadpoolctl", "tqdm", "matplotlib")  # with what these need in turn


def text(path):
    return (ROOT / path).read_text("utf-8")


def test_the_version_is_in_one_place():
    assert 'dynamic = ["version"]' in text("pyproject.toml")
    assert re.search(rf'^__version__ = "{re.escape(onlinegp.__version__)}"$', text("src/onlinegp/__init__.py"), re.M)
    assert f"## {onlinegp.__version__}" in text("CHANGELOG.md")


def test_the_citation_is_that_of_this_version():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load(text("CITATION.cff"))
    assert str(citation["version"]) == onlinegp.__version__
    assert citation["license"] == "BSD-3-Clause"
    assert {"cff-version", "message", "title", "authors", "preferred-citation"} <= set(citation)


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda p: p.name)
def test_workflows_parse(path):
    yaml = pytest.importorskip("yaml")
    flow = yaml.safe_load(path.read_text("utf-8"))
    assert flow[True]  # "on", as YAML reads it
    for job in flow["jobs"].values():
        assert job["runs-on"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])


def test_wheels_are_built_for_three_systems():
    yaml = pytest.importorskip("yaml")
    flow = yaml.safe_load(text(".github/workflows/wheels.yml"))
    systems = " ".join(flow["jobs"]["wheels"]["strategy"]["matrix"]["os"])
    assert all(name in systems for name in ("ubuntu", "macos", "windows"))


def closure(names):
    """Return the installed distributions that these need, themselves included."""
    found, todo = {}, list(names)
    while todo:
        name = re.split(r"[^\w.-]", todo.pop())[0]
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        try:
            found[key] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform or Python
        todo += [need for need in found[key].requires or [] if "extra ==" not in need]
    return found.values()


def link_dependencies(folder):
    """Lend the empty environment what the package declares to need, and nothing else: no index is asked."""
    folder.mkdir()
    for dist in closure(NEEDED):
        site = Path(str(dist.locate_file("")))
        for top in {Path(file).parts[0] for file in dist.files or []} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(site / top)


@pytest.mark.slow
def test_sdist_and_wheel_install_in_a_clean_environment(tmp_path):
    pytest.importorskip("scikit_build_core")
    dist = tmp_path / "dist"
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)  # away from a folder named build
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    assert onlinegp.__version__ in sdist.name
    assert onlinegp.__version__ in wheel.name
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    assert any(name.endswith("/LICENSE") for name in names)
    assert any("/tests/laws/" in name for name in names)
    assert not any("/.venv/" in name or "/.ci/" in name for name in names)
    inside = zipfile.ZipFile(wheel).namelist()
    assert "onlinegp/py.typed" in inside
    assert "onlinegp/recipes/update.py" in inside
    assert not any(name.startswith(("tests", "docs")) for name in inside)

    place = tmp_path / "env"
    venv.create(place, with_pip=False)
    binaries = place / ("Scripts" if os.name == "nt" else "bin")
    site = next(place.rglob("site-packages"))
    link_dependencies(tmp_path / "needed")
    (site / "needed.pth").write_text(str(tmp_path / "needed"))
    target = [sys.executable, "-m", "pip", "--python", str(binaries / "python"), "install", "--no-deps", "--no-index"]
    subprocess.run([*target, str(wheel)], check=True, capture_output=True)

    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    run = {"capture_output": True, "text": True, "check": True, "cwd": tmp_path, "env": clean}
    where = subprocess.run([binaries / "python", "-c", "import onlinegp; print(onlinegp.__file__)"], **run).stdout
    assert Path(where.strip()).is_relative_to(place)
    predicted = subprocess.run([binaries / "onlinegp", "--version"], **run).stdout
    assert predicted.split() == ["onlinegp", onlinegp.__version__]
    subprocess.run([binaries / "onlinegp", "demo", "--out", "out"], **run)
    assert (tmp_path / "out" / "demo.png").stat().st_size > 10_000
