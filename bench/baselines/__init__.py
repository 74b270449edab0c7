"""Algorithms that the papers compare with and that no user would want, written for the comparison only."""
