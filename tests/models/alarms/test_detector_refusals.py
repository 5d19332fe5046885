"""What a detector refuses: wrong parameters, bad rows and forged events. And how it is put around a model."""

from __future__ import annotations

import json

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.models.alarms.around import unwatched, watching


def noise(n):
    return np.random.default_rng(0).standard_normal(n)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rate": 0.0}, "rate must be greater than 0"),
        ({"rate": 1.5}, "rate must be greater than 0"),
        ({"season": 3}, "season must be 0, or from 9 to 2048"),
        ({"season": 1.5}, "season must be a number of rows"),
        ({"engine": "fast"}, "engine must be"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ogp.Detector(**parameters).detect(noise(10))


def test_a_model_that_is_none_is_refused():
    with pytest.raises(TypeError, match="model must be an estimator"):
        ogp.Detector(3).detect(noise(10), noise(10)[:, None])


def test_bad_rows_change_nothing():
    detector = ogp.Detector()
    detector.detect(noise(300))
    before = detector.to_bytes()
    for y in ([np.inf], [], "abc", [[1.0, 2.0]]):
        with pytest.raises((ValueError, TypeError)):
            detector.detect(y)
    assert detector.to_bytes() == before


def test_a_detector_is_put_around_a_model_that_has_learned_and_taken_away():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    y = X.sum(axis=1) + 0.1 * rng.standard_normal(600)
    plain = ogp.KRLST(noise=0.1, budget=20).fit(X[:200], y[:200])
    detector = watching(plain, rate=0.01)
    assert detector.rate == 0.01
    detector.detect(y[200:400], X[200:400])
    stricter = watching(detector, rate=0.0001)
    assert stricter.learner.alarms[0].watch.rows == 200
    assert stricter.predict_one(X[0]) == detector.predict_one(X[0])
    out = unwatched(stricter)
    plain.partial_fit(X[200:400], y[200:400])
    assert out.to_bytes() == plain.to_bytes()
    assert unwatched(plain) is plain


def opened():
    """A detector with past events and one that is open, and the text of these."""
    y = noise(1500)
    y[1000] += 10.0
    y[1300:] += 4.0
    detector = ogp.Detector(rate=0.01)
    detector.detect(y[:1310])
    return detector, json.loads(detector.dump()["learned"]["output0.events"])


NO_NUMBERS = (True, "x", [1] * 9, {"a": 1}, float("inf"), float("nan"))
NO_COUNTS = (*NO_NUMBERS, 1.5, -100, 2**63)


def test_forged_events_are_refused():
    detector, known = opened()
    contents = detector.dump()

    def refused(text):
        forged = contents | {"learned": contents["learned"] | {"output0.events": text}}
        with pytest.raises(ValueError, match="the events of a detector cannot be read"):
            detector.load(forged)

    for part, event in (("open", known["open"]), ("past", known["past"][0])):
        for name, value in event.items():
            for odd in NO_NUMBERS if type(value) in (float, type(None)) else NO_COUNTS:
                changed = event | {name: odd}
                refused(json.dumps(known | {part: changed if part == "open" else [changed]}))
        missing = dict(list(event.items())[1:])
        refused(json.dumps(known | {part: missing if part == "open" else [missing]}))
    for part, odd in (("open", 5), ("open", []), ("past", 5), ("past", 3 * known["past"]), ("built", []), ("built", 1)):
        refused(json.dumps(known | {part: odd}))
    for text in ("", "\0", "{}", "[]", "[" * 100_000):
        refused(text)


def test_an_input_that_is_none_is_not_blamed_by_a_forged_event():
    detector, known = opened()
    contents = detector.dump()
    for changed in ({"inputs": 2**40}, {"unusual": [0]}):
        text = json.dumps(known | {"past": [known["past"][0] | changed]})
        with pytest.raises(ValueError, match="cannot be read"):
            detector.load(contents | {"learned": contents["learned"] | {"output0.events": text}})
