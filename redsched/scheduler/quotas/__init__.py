"""Quotas: limits, usage, and shares over several cells."""
