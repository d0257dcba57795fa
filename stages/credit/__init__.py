"""Credit: reward goes back through a version's rollout trees, pruning, advantages. DuckDB SQL over the tables."""
