"""The agent's journal: what its hosts hold, durable on disk."""
