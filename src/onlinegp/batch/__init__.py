"""Batch Gaussian process regression, its likelihood, and the estimation of hyperparameters."""
