"""Searches that go on where they stopped: what a live query has prepared of its events stays in memory."""
