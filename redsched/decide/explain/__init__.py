"""Explanations: why a request goes where it goes, or nowhere, and what would have to change."""
