"""Conditions: over whole columns, compiled for kernels."""
