"""Loss rates, gap distributions and the scores of incomplete matches."""
