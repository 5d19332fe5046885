"""No two columns of the output have one name."""

from __future__ import annotations

import json

import pytest
from shell import FIXED, inside, onlinegp


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("mean,mean_input,y", ["mean_input_input", "mean_input", "y"]),
        ("mean_input,mean,y", ["mean_input", "mean_input_input", "y"]),
        ("std,std_input_input,y", ["std_input", "std_input_input", "y"]),
        ("upper,lower,mean", ["upper_input", "lower_input", "mean_input"]),
    ],
)
def test_inputs_called_as_outputs(tmp_path, header, names):
    first, second, target = header.split(",")
    (tmp_path / "data.csv").write_text(f"{header},x\n" + "a,b,1,2\n" * 3)
    args = ["run", tmp_path / "data.csv", *FIXED, "--target", target, "--features", "x", "--copy", f"{first},{second}"]
    inside(*args, "--out", tmp_path / "out.jsonl")
    pairs = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0], object_pairs_hook=list)
    assert [name for name, _ in pairs] == [*names, "mean", "std", "lower", "upper", "log_density"]
    assert [value for _, value in pairs[:3]] == ["a", "b", 1]


def test_a_key_called_target_where_the_model_has_none(tmp_path):
    (tmp_path / "train.csv").write_text("x,y\n" + "".join(f"{i},{i % 3}\n" for i in range(30)))
    inside("run", tmp_path / "train.csv", *FIXED, "--save", tmp_path / "m.ogp", "--out", tmp_path / "o.csv")
    done = onlinegp("predict", tmp_path / "m.ogp", "-", stdin="target,x\na,1\nb,2\n")
    names = done.stdout.decode().splitlines()[0].split(",")
    assert len(set(names)) == len(names)


def test_a_column_that_is_key_and_feature(tmp_path):
    """Copied as it was written, in short blocks and in long ones."""
    for rows in (3, 60):
        (tmp_path / "data.csv").write_text("x,y\n" + "1.50,2\n" * rows)
        out = inside("run", tmp_path / "data.csv", *FIXED, "--features", "x", "--copy", "x").stdout.decode()
        assert [line.split(",")[0] for line in out.splitlines()] == ["x", *["1.50"] * rows]
