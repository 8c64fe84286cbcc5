"""Selections: resolve, route to a cell, decide, claim, interpret; also waiting for room and for confirmation."""
