"""Hooks: commands and URLs that start, stop and resize the work of claims."""
