"""Where predictions go: CSV, JSON lines, Parquet, and the report."""
