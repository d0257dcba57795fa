"""What stages share: table schemas, files, settings, ids, command lines. Light: no vLLM, no torch, no duckdb."""
