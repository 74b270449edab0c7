"""Flink CEP, measured on the same streams as a baseline."""
