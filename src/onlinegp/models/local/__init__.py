"""The exact GP on the nearest rows: the estimator, the readable learner, and its compiled twin."""
