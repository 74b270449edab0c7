"""The streaming step, which knows no Spark."""
