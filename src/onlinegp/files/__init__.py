"""Models and other results on disk: there in full or not at all, and safe to open."""
