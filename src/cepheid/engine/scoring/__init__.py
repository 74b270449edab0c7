"""What a match is worth: scores of missing events, confidence at imprecise times, both."""
