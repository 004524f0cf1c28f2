"""Routes of pools: upload as JSON, CSV or Parquet, items and columns."""
