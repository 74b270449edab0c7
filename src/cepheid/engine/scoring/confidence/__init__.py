"""Confidence: the probability of the worlds in which a match is one (TIME)."""
