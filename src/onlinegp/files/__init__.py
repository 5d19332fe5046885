"""Write and read files: complete or not at all, and safe to open."""
