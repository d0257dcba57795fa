"""The tasks stage: data sets become the TASKS table, and references that fail are set aside."""
