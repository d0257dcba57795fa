"""Iteration-k pass@1 of a policy on a benchmark, and comparisons of two evaluations."""
