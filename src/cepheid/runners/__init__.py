"""Runners: the same engines over local tables, Spark batches and Spark streams."""
