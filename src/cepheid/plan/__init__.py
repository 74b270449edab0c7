"""Plans: what a query does, step by step, and which engine does it."""
