"""Which of the matches are reported."""
