"""Baselines to beat."""
