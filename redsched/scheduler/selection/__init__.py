"""Selections: resolve, route to a cell, decide, claim, interpret; around that, wait for room or confirmation."""
