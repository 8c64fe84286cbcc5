"""The agent's journal: the placements of its hosts, durable on disk."""
