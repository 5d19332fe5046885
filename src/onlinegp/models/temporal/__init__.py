"""Gaussian processes over time, and regressions on the past of a series."""
