"""Aggregates, server groups and shared pools, as operators declare them."""
