"""A mixture of heavy-tailed members, killed and resumed, gives the bytes of a run that was not."""

from __future__ import annotations

import pytest
from shell import onlinegp, write_csv
from test_crash import Crashing

MINE = """
import onlinegp as ogp
from onlinegp.kernels import RBF


class Both(ogp.OnlineRegressor):
    def __init__(self, *, noise=0.05):
        self.noise = noise

    def start(self, features, outputs):
        gp, line = ogp.KRLST(RBF(1.0), noise=self.noise, budget=40), ogp.LinearRLS(noise=self.noise, forgetting=0.999)
        members = [ogp.HeavyTailed(gp), ogp.Calibrated(line)]
        return ogp.Conformal(ogp.Mixture(members)).start(features, outputs)
"""


@pytest.mark.slow
def test_killed_runs_of_a_mixture_give_the_same_bytes(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    write_csv(tmp_path / "data.csv", 3_000)
    args = ["run", "data.csv", "--import", "mine", "--model", "both", "--noise", "0.05", "--out", "out.csv", "--quiet"]
    onlinegp(*args, cwd=tmp_path)
    out = tmp_path / "out.csv"
    whole = out.read_bytes()
    assert whole.count(b"\n") == 3_001
    out.unlink()
    crashing = Crashing([*args, "--checkpoint", "safe", "--every", "200"], out, len(whole), cwd=tmp_path, seed="mix")
    crashing.kill(2)
    onlinegp(*crashing.args, cwd=tmp_path)
    assert out.read_bytes() == whole
    assert all(0 < row < 3_000 for row in crashing.landed)
