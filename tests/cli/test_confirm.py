"""`onlinegp confirm` changes a saved detector as `Detector.confirm` does, and refuses what is no event."""

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.cli import main


@pytest.fixture
def saved(tmp_path):
    y = np.random.default_rng(0).standard_normal(2000)
    y[1500:1520] += 4.0
    detector = ogp.Detector()
    detector.detect(y)
    detector.save(tmp_path / "model.ogp")
    return detector, tmp_path / "model.ogp"


def test_a_confirmed_event_is_forgotten(saved, capsys):
    detector, path = saved
    event = next(event for event in detector.events_ if 1490 <= event.start <= 1520)
    before = path.read_bytes()
    assert main(["confirm", str(path), str(event.number)]) == 0
    assert f"event {event.number} confirmed" in capsys.readouterr().out
    detector.confirm(event)
    assert path.read_bytes() == detector.to_bytes() != before


def test_an_unknown_event_and_other_models_are_refused(saved, capsys):
    _, path = saved
    before = path.read_bytes()
    assert main(["confirm", str(path), "99"]) == 1
    assert "one of the latest" in capsys.readouterr().err
    assert path.read_bytes() == before
    ogp.LinearRLS().save(path)
    assert main(["confirm", str(path), "1"]) == 1
    assert "has no detector" in capsys.readouterr().err


def test_the_reason_names_the_columns(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((1200, 2)), 0.1 * rng.standard_normal(1200)
    y = X[:, 0] + noise
    y[1000] += 5.0
    rows = "".join(f"{a},{b},{c}\n" for a, b, c in zip(*X.T, y, strict=True))
    (tmp_path / "d.csv").write_text("load,wind,power\n" + rows)
    model, out = str(tmp_path / "m.ogp"), str(tmp_path / "o.csv")
    options = ["--model", "linearrls", "--flag", "0.001", "--save", model, "--out", out, "--quiet"]
    assert main(["run", str(tmp_path / "d.csv"), *options]) == 0
    number = next(event.number for event in ogp.load(model).events_ if event.peak == 1000)
    assert main(["confirm", model, str(number)]) == 0
    assert "at row 1001; load and wind as usual" in capsys.readouterr().out
