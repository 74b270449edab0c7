"""Cepheid: complex event pattern matching for Spark."""

__version__ = "0.1.0"
