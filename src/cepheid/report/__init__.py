"""Results for people: one HTML page that opens offline, and how objects look in notebooks."""
