"""Filters, weighers and policies: the registry, those of other packages, and those written for Nova."""
