"""Imprecise timestamps (TIME): events known to lie in an interval, matches with a range and a confidence."""
