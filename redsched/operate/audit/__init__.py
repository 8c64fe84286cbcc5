"""Auditing a cell against its invariants, and repairing what an audit finds."""
