"""Imprecise timestamps (TIME): events known to lie in an interval, matches with a range and a confidence."""

from cepheid.engine.imprecise.intervals import run_intervals
from cepheid.engine.imprecise.points import run_points

__all__ = ["run_intervals", "run_points"]
