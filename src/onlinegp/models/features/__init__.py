"""Models that are linear in a fixed basis."""
