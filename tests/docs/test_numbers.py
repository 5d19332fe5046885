"""The numbers of the pages are those of a fresh run, and what checks them notices a wrong one."""

from __future__ import annotations

import check_numbers
import costs
import pytest

from onlinegp.kernels import RBF


def test_the_table_has_every_model_that_is_measured():
    told = check_numbers.table(check_numbers.CHOOSING, "| estimator | centers")
    assert list(told) == list(costs.models(RBF(), 0.01, 1.0, 1.0, "auto"))


def test_a_wrong_number_is_noticed():
    assert not list(check_numbers.compare("x", [2.0, -20.1, 0.95], [3.0, -20.3, 0.96], [10.0, 0.3, 0.02]))
    for fresh in ([30.0, -20.1, 0.95], [2.0, -19.0, 0.95], [2.0, -20.1, 0.99]):
        assert len(list(check_numbers.compare("x", [2.0, -20.1, 0.95], fresh, [10.0, 0.3, 0.02]))) == 1


def test_cheap_rows_are_as_the_page_says(monkeypatch):
    """Errors and coverages of some rows, again; the slow test does all of them."""
    cheap = ("`QKLMS`", "`KRLST`, M = 100", "`Calibrated(KRLST)`, M = 100")
    models = costs.models
    monkeypatch.setattr(costs, "models", lambda *args: {name: models(*args)[name] for name in cheap})
    wrong = [line for line in check_numbers.costs() if "docs/costs.py has not" not in line]
    assert not [line for line in wrong if "fresh run" in line], wrong


def test_what_calibration_costs_is_as_the_page_says():
    assert not list(check_numbers.calibration())


@pytest.mark.slow
def test_the_band_of_the_readme_is_measured(monkeypatch, tmp_path):
    text = check_numbers.README.read_text("utf-8")
    (tmp_path / "README.md").write_text(text.replace("contains about 95% of", "contains about 50% of"), "utf-8")
    monkeypatch.setattr(check_numbers, "README", tmp_path / "README.md")
    assert any(line.startswith("README, the band: the page says 0.5") for line in check_numbers.readme())


@pytest.mark.slow
def test_every_row_is_as_the_page_says():
    assert not list(check_numbers.costs())
