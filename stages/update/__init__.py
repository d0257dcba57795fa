"""The update stage: one version's kept nodes and a policy give the next policy; see docs/update.md."""
