"""The functions that queries may call, one entry each: its types, its meaning, and its form for each way to run it."""
