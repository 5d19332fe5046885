"""Reproductions of papers: one folder for each, code and expected numbers together."""
