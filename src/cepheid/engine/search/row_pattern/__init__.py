"""Row patterns: the preferred match at each row, by compiled backtracking."""
