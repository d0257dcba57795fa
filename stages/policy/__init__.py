"""Version 0 of a run's policy: SmolLM2 from PyPI, a folder or hub model of the user's, or a small one made here."""
