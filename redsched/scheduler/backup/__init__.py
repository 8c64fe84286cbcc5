"""Exporting, importing and replaying a cell."""
