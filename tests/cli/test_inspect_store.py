"""`onlinegp inspect` on the store of a fleet: what is in it, and one model pulled out."""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest
from shell import inside

import onlinegp as ogp
from onlinegp.fleet.sqlite_file import Store
from onlinegp.kernels import RBF


@pytest.fixture
def store(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    with ogp.Fleet(ogp.KRLST(RBF(0.7), budget=9), store=tmp_path / "fleet.db", keep=2) as fleet:
        fleet.learn([["a", "b", "7"][i % 3] for i in range(60)], X, X[:, 0])
    return tmp_path / "fleet.db"


def test_what_is_in_it(store):
    facts = json.loads(inside("inspect", store, "--json").stdout)
    assert (facts["models"], facts["compact"]) == (3, False)
    assert sorted(map(str, facts["first keys"])) == ["7", "a", "b"]
    assert facts["type of keys"] == "strings"
    assert facts["model"] == "KRLST"
    assert facts["parameters"]["budget"] == "9"
    assert b"models: 3" in inside("inspect", store).stdout


@pytest.mark.parametrize("key", ["b", "7"])
def test_one_model_is_pulled_out(store, key):
    out = store.with_name("one.ogp")
    facts = json.loads(inside("inspect", store, "--key", key, "--out", out, "--json").stdout)
    assert facts["learned"] == 20
    with ogp.Fleet.load(store) as fleet:
        assert out.read_bytes() == fleet[key].to_bytes()
    assert ogp.load(out).n_samples_seen_ == 20


def test_a_key_of_digits_may_be_a_number(tmp_path):
    with ogp.Fleet(ogp.KRLST(budget=9), store=tmp_path / "fleet.db") as fleet:
        fleet.learn([7, -8], np.zeros((2, 2)), [1.0, 2.0])
    for key in ("7", "-8"):
        assert json.loads(inside("inspect", tmp_path / "fleet.db", f"--key={key}", "--json").stdout)["learned"] == 1
    assert json.loads(inside("inspect", tmp_path / "fleet.db", "--json").stdout)["type of keys"] == "whole numbers"


def test_also_while_another_process_writes(store):
    with ogp.Fleet.load(store) as fleet:
        fleet.learn(["new"], np.zeros((1, 2)), [1.0])
        assert json.loads(inside("inspect", store, "--json").stdout)["models"] == 3
    assert json.loads(inside("inspect", store, "--json").stdout)["models"] == 4


def test_a_store_in_a_read_only_folder(store, monkeypatch):
    """As on a read-only disk, SQLite must not make files beside the store."""
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with closing(Store(store, write=False)) as file:
        assert file.count == 3
        assert sorted(path.name for path in store.parent.iterdir()) == ["fleet.db"]


def test_what_is_refused(store):
    assert b"no model in" in inside("inspect", store, "--key", "none", code=1).stderr
    assert b"--out requires --key" in inside("inspect", store, "--out", store.with_name("x.ogp"), code=1).stderr
    model = store.with_name("model.ogp")
    ogp.KRLST().save(model)
    assert b"--key is for the store" in inside("inspect", model, "--key", "a", code=1).stderr
    assert b"same file" in inside("inspect", store, "--key", "a", "--out", store, code=1).stderr


def test_the_folder_of_a_runs_checkpoints(tmp_path):
    rows = "".join(f"{'ab'[i % 2]},{i % 5},{i % 3}\n" for i in range(20))
    (tmp_path / "data.csv").write_text("key,a,y\n" + rows)
    fixed = ["--kernel", "rbf(0.7)", "--noise", "0.1", "--checkpoint", "safe", "--out", "out.csv"]
    inside("run", "data.csv", "--by", "key", "--target", "y", *fixed, cwd=tmp_path)
    assert json.loads(inside("inspect", tmp_path / "safe", "--json").stdout)["models"] == 2
    one = json.loads(inside("inspect", tmp_path / "safe", "--key", "a", "--json").stdout)
    assert one["learned"] == 10
