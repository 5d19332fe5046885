"""Models that correct several of the last rows at once: kernel affine projections, and projections onto hyperslabs."""
