"""Sampling rollout trees with vLLM: one turn of one policy version (or of an evaluation) at a time."""
