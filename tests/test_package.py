"""The package as people meet it: what importing costs, the README's example, the demonstration."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import onlinegp as ogp

ROOT = Path(__file__).parents[1]


def test_importing_is_light():
    """NumPy and nothing heavy: the rest is imported where it is used."""
    heavy = ("scipy", "sklearn", "matplotlib", "pandas", "tqdm")
    code = f"import onlinegp, sys; print([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_readmes_example_runs():
    text = (ROOT / "README.md").read_text()
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1), names)
    truth = 70 + 5 * np.sin(names["grid"][:, 0])
    near = np.abs(names["grid"][:, 0]) < 5
    assert np.abs(names["mean"] - truth)[near].max() < 0.6  # of a noise of one
    assert names["std"][near].max() < 1.4 < names["std"][~near].max()
    lower, upper = names["trace"].interval(0.95)
    assert ((lower <= names["y"]) & (names["y"] <= upper))[20:].mean() > 0.93
    rng = np.random.default_rng(1)
    x = rng.uniform(-5, 5, (4000, 1))
    y = 70 + 5 * np.sin(x[:, 0]) + rng.standard_normal(4000)
    lower, upper = names["model"].predict_interval(x)
    assert 0.93 < ((lower <= y) & (y <= upper)).mean() < 0.98  # "the band contains about 95% of new rows"


def test_the_demonstration(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    from onlinegp.cli import demo, main
    from onlinegp.datasets import channel_switch

    X, y = channel_switch(demo.ROWS, switch=demo.SWITCH, noise=demo.NOISE, seed=0)
    assert demo.models()["Auto"].get_params() == ogp.Auto().get_params()  # it is told nothing
    results = demo.stream(X, y)
    names = ["KLMS", "QKLMS", "beta-KLMS", "KRLS-T", "KRLS-T, calibrated", "Auto"]
    assert [result.name for result in results] == names
    settled = slice(demo.SWITCH - 250, demo.SWITCH)
    errors = [10 * np.log10(np.mean((y - result.trace.mean)[settled] ** 2)) for result in results]
    assert max(errors) < -13
    assert errors[-1] == min(errors)
    densities = {result.name: result.trace.log_density[-250:].mean() for result in results}
    assert min(densities["KRLS-T, calibrated"], densities["Auto"]) > max(densities[name] for name in names[:3])
    inside = [demo.inside(y, result.trace)[demo.SETTLED :].mean() for result in results]
    assert 0.94 < inside[-2] < 0.96
    assert 0.93 < inside[-1] < 0.97
    monkeypatch.setattr(demo, "stream", lambda X, y: results)
    assert main(["demo", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert all(result.name in told for result in results)
    assert "onlinegp run data.csv" in told
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_a_wheel_without_a_compiler_is_not_for_every_platform(tmp_path):
    """pip keeps the wheels that it builds: one for any platform would be installed where there is a compiler."""
    pytest.importorskip("scikit_build_core")
    copy = tmp_path / "copy"
    for name in ("src", "native"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    code = f"from scikit_build_core.build import build_wheel; print(build_wheel({str(tmp_path)!r}))"
    environment = os.environ | {"CC": "/bin/false", "CXX": "/bin/false"}
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    tags = wheel.name.split("-", 2)[2]
    assert tags.startswith("py3-none-")  # a compiled one, cp311-cp311-PLATFORM, goes before it
    assert not tags.endswith("-any.whl")


def test_an_unknown_command_is_refused(capsys):
    from onlinegp.cli import main

    with pytest.raises(SystemExit) as stop:
        main(["fly"])
    assert stop.value.code == 2
    assert "demo" in capsys.readouterr().err


def test_the_version_is_said_once(capsys):
    import onlinegp
    from onlinegp.cli import main

    with pytest.raises(SystemExit):
        main(["--version"])
    assert onlinegp.__version__ in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("version", ["21.0.1", "11.0.2", None])
def test_spark_is_installed_only_for_its_own_tests(version, tmp_path):
    """`make test` leaves half a gigabyte alone, whatever Java there is; `make check` runs Spark's tests if it can."""
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n" if version else "#!/bin/sh\nexit 127\n")
    java.chmod(0o755)
    path = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}

    def steps(target: str) -> str:
        return subprocess.run(["make", "-n", target], cwd=ROOT, env=path, capture_output=True, text=True).stdout

    assert "spark" not in steps("test").lower()
    for target in ("test-spark", "check"):
        assert ("pytest tests/spark" in steps(target)) == (version == "21.0.1")
        assert ("were not run" in steps(target)) == (version != "21.0.1")


def test_the_front_door_is_small():
    assert len(ogp.__all__) <= 45
    assert all(hasattr(ogp, name) for name in ogp.__all__)
    assert set(dir(ogp)) >= set(ogp.__all__)


@pytest.mark.parametrize(
    ("name", "place"),
    [("KAP", "onlinegp.kafbox.KAP"), ("Gaussian", "onlinegp.predictions.Gaussian"), ("Trace", "onlinegp.trace.Trace")],
)
def test_an_error_says_where_the_other_names_are(name, place):
    with pytest.raises(AttributeError, match=re.escape(place)):
        getattr(ogp, name)
    module, _, last = place.rpartition(".")
    assert hasattr(import_module(module), last)


def test_type_checkers_see_the_same_names():
    """They read the stub, because some names are imported when they are first used."""
    tree = ast.parse(Path(ogp.__file__).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = {alias.name: node.module for node in imports for alias in node.names}
    assert sorted(names) == sorted(ogp.__all__)
    for name, module in names.items():
        assert getattr(import_module(module), name) is getattr(ogp, name)
    (listed,) = (node for node in tree.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(listed.value) == ogp.__all__


def test_every_name_elsewhere_is_there():
    for module, names in ogp.ELSEWHERE.items():
        assert all(hasattr(import_module(f"onlinegp.{module}"), name) for name in names)


def test_a_model_shows_what_is_public():
    model = ogp.KRLST().fit(np.zeros((3, 1)), np.arange(3.0))
    shown = [name for name in dir(model) if not name.startswith("__")]
    assert {"fit", "learn_one", "predict", "run", "save", "size_", "alpha_", "noise", "budget"} <= set(shown)
    assert not [name for name in shown if name.startswith("_")]
    assert not {"start", "dump", "searched", "learner"} & set(shown)
    assert len(shown) < 50


def test_a_file_of_a_model_that_was_not_imported_yet_is_read(tmp_path):
    """Parts of the library are imported when they are first used, and a file may be the first to name one."""
    path = tmp_path / "model.ogp"
    ogp.Detector(ogp.LinearRLS()).fit(np.arange(30.0)[:, None], np.arange(30.0)).save(path)
    code = (
        "import sys, onlinegp; assert 'onlinegp.models.alarms.detector' not in sys.modules; "
        f"print(type(onlinegp.load({str(path)!r})).__name__)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "Detector"
    assert all(hasattr(import_module(f"onlinegp.{module}"), name) for name, module in ogp.LATER.items())
