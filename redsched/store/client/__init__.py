"""Sending scripts: calls, batches, pipelines, retries, and what an answer waits for."""
