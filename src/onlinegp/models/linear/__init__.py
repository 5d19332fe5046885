"""Models that are linear in their inputs."""
