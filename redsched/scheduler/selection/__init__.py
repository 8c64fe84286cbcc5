"""A selection: find references and a cell, decide, claim, interpret, and wait where the caller asks for it."""
