"""What the commands say and do about tuning: a target that the inputs do not explain, a kernel that is given, a bar."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from shell import inside

import onlinegp as ogp
from onlinegp import progress


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a file of a noisy sine, and one whose target has nothing to do with the inputs."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("tuning")
    x, noise = rng.standard_normal((300, 2)), rng.standard_normal(300)
    targets = {"sine.csv": np.sin(2.0 * x[:, 0]) + 0.2 * noise, "noise.csv": noise}
    for name, y in targets.items():
        np.savetxt(folder / name, np.column_stack([x, y]), delimiter=",", header="a,b,y", comments="")
    return folder


GIVEN = ["--kernel", "rbf(1.0)", "--model", "krlst", "--budget", "40", "--tune", "200"]


@pytest.mark.parametrize("command", ["run", "tune"])
def test_a_target_that_is_not_explained_is_named(data, command):
    assert "no better than their mean" in inside(command, data / "noise.csv", *GIVEN).stderr.decode()
    assert "no better than their mean" not in inside(command, data / "sine.csv", *GIVEN).stderr.decode()


def test_quiet_means_quiet(data):
    assert inside("run", data / "noise.csv", *GIVEN, "--quiet").stderr == b""


def test_the_noise_of_a_given_kernel_is_tuned(data):
    told = inside("tune", data / "sine.csv", *GIVEN).stdout.decode()
    assert "kernel = rbf(1)" in told
    noise = float(told.split("noise = ")[1].split()[0])
    assert noise == pytest.approx(0.04 / 0.54, rel=0.4)  # in variances of y
    assert "noise = 0.25\n" in inside("tune", data / "sine.csv", *GIVEN, "--noise", "0.25").stdout.decode()


def test_a_change_of_the_stream_is_told(data, tmp_path):
    table = np.loadtxt(data / "sine.csv", delimiter=",", skiprows=1)
    table = np.vstack([table, table * [1.0, 1.0, -1.0] + [0.0, 0.0, 3.0]])
    np.savetxt(tmp_path / "changes.csv", table, delimiter=",", header="a,b,y", comments="")
    told = inside("run", tmp_path / "changes.csv", "--tune", "100", "--budget", "40").stderr.decode()
    (line,) = [line for line in told.splitlines() if " changed at row " in line]
    assert abs(int(line.split()[-1]) - 301) < 15


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_on_a_terminal_only(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    for stream, quiet, drawn in ((Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        bar = progress.ShareBar(quiet=quiet)
        bar(0.25)
        bar(1.0)
        assert ("tuning" in stream.getvalue()) == drawn


def test_what_takes_long_in_python_has_a_bar_on_a_terminal(monkeypatch):
    """Runs, fits, tunings and comparisons; what is done within a second has none."""
    X = np.random.default_rng(0).normal(size=(3000, 1))
    y = np.sin(X[:, 0])

    def drawn() -> str:
        monkeypatch.setattr(sys, "stderr", Terminal())
        alone = ogp.run(ogp.KLMS(), X, y)
        ogp.KRLST(budget=5).fit(X, y)
        ogp.Auto(rows=20, tuning_delay=0.0).fit(X[:30], y[:30])
        ogp.estimate_hyperparameters(X[:30], y[:30])
        ogp.compare([ogp.LinearRLS()], lambda seed: (X[seed::3], y[seed::3]), runs=2, jobs=1)
        np.testing.assert_array_equal(alone.mean, quiet.mean)  # the same bits, in blocks
        return sys.stderr.getvalue()

    quiet = ogp.run(ogp.KLMS(), X, y, progress=False)
    monkeypatch.setattr(progress, "DELAY", 1000.0)
    assert drawn() == ""
    monkeypatch.setattr(progress, "DELAY", 0.0)
    told = drawn()
    assert all(name in told for name in ("KLMS", "KRLST", "tuning", "hyperparameters", "runs"))


def test_long_lists_of_length_scales_of_members_are_cut(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((170, 7))
    np.savetxt(
        tmp_path / "wide.csv",
        np.column_stack([X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(170)]),
        delimiter=",",
        header=",".join("abcdefgy"),
        comments="",
    )
    told = inside("run", tmp_path / "wide.csv", "--tune", "80").stderr.decode()
    members = told[told.index("Members and") :]
    assert "... 7 numbers])" in members
    assert max(map(len, members.splitlines())) < 220
