"""From a history of events to a loss and gap model."""
