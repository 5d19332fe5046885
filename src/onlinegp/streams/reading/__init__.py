"""Read rows from CSV, JSON lines and Parquet, in files and pipes."""
