"""The kernel least mean squares family: a fixed posterior covariance, O(m) per sample."""
