"""PySpark tables, batch and stream."""
