"""The report stage: closing tables in the terminal, one HTML page, and SQL views over a run's tables."""
