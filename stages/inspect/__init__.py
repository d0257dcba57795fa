"""Ready questions to a run's tables, answered in the terminal."""
