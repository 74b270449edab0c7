"""The SASE dialect: its grammar, and text to syntax."""
