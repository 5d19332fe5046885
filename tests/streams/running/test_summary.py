"""The summary of a run: its figures, and which rows they are about."""

from __future__ import annotations

import json

import numpy as np
import pytest
from shell import inside, rows_of


def test_rows_that_were_predicted_without_the_model_are_told_apart_in_the_scores(tmp_path):
    """The first rows teach the columns: their errors say nothing about the model."""
    path, out, summary = tmp_path / "a.csv", tmp_path / "o.csv", tmp_path / "s.json"
    states = np.random.default_rng(0).choice(["on", "off"], 150)
    path.write_text("state,x,y\n" + "".join(f"{s},{i % 7},{5 * (s == 'on') + i % 7}\n" for i, s in enumerate(states)))
    options = ["--model", "linearrls", "--tune", "60", "--out", out, "--summary", summary]
    told = inside("run", path, "--categories", "onehot", *options).stderr.decode()
    errors = [float(row["y"]) - float(row["mean"]) for row in rows_of(out)[60:]]
    later = json.loads(summary.read_text())["later"]
    assert later["scored"] == 90
    assert later["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(errors))))
    assert f"of these, the last 90, which the model predicted: nMSE {later['nmse_db']:.2f} dB" in told
    assert "which the model predicted" not in inside("run", path, *options).stderr.decode()
    assert "later" not in json.loads(summary.read_text())  # without columns to learn, the model predicts all rows
