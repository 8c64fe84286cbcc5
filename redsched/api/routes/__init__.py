"""How the routes of operations are handled, and the routes that are no operation, one file per subject.

`redsched.operations` declares the routes of operations; the others declare every status that they can return.
"""
