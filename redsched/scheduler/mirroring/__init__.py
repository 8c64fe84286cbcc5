"""Replicas of some cells instead of all: which cells a scheduler mirrors, and what it knows about the others."""
