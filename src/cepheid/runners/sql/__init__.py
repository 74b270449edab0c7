"""Queries inside SQL statements."""
