"""Where rows come from: CSV, JSON lines, Parquet, files and pipes."""
