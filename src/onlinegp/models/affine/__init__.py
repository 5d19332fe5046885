"""Models that correct several recent rows at once: kernel affine projections, and projections onto hyperslabs."""
