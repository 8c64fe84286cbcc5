"""Sending scripts: calls, batches, pipelines, retries and durability."""
