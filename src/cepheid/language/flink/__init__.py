"""Flink CEP's way of writing patterns, the third dialect beside SASE and MATCH_RECOGNIZE."""
