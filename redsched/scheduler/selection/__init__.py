"""A selection: resolve, route to a cell, decide, claim, interpret; and wait around that for room or confirmation."""
