"""Quotas: limits, what is used of them, and shares over several cells."""
