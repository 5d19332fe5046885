"""Write predictions as CSV, JSON lines or Parquet, and reports as HTML."""
