"""Models that correct the errors of several recent rows at once: affine projections and hyperslab projections."""
