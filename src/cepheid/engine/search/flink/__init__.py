"""Flink's automaton walked by a kernel: runs are numbers in arrays, and what they took is a chain of nodes."""
