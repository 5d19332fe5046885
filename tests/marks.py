"""Marks of single cases."""

from __future__ import annotations

import pytest


def slow(*values: object) -> object:
    """Return a case that only `make test-slow` runs."""
    return pytest.param(*values, marks=pytest.mark.slow)
