"""Charts and texts for notebooks, reports and pages."""
