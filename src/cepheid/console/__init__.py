"""The console: one local page to write queries, run them on tables and streams, and see what they find."""
