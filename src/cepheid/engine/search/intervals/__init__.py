"""Event-based search at imprecise times (TIME section 4)."""
