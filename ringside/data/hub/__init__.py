"""Rows with their pictures in them: data sets of the Hugging Face Hub, and parquet files."""
