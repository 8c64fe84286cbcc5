"""The status of a store and its cells: what runs, what waits for what, and what to do about it."""
