"""Filters, weighers and policies: the registry, plugins of other packages, and classes written for Nova."""
