"""Drawings of queries, for notebooks, reports and pages."""
