"""GPs on the nearest rows: the estimators, the Python learners, and their compiled twins."""
