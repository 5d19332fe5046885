"""The recursive least squares family: a tracked posterior covariance, O(m^2) per sample."""
