"""Searches: ways to walk a query's automaton over its candidates."""
