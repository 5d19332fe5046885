"""Baselines: simple models that any other model should beat."""
