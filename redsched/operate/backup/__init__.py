"""Export, import and replay a cell."""
