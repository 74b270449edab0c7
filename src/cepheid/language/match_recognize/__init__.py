"""Row patterns of SQL:2016: the MATCH_RECOGNIZE clause, from text to a clause bound to the columns of a table."""
