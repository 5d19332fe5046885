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
