"""The query of a request: Nova's JsonFilter, compiled to operations on columns.

    ["and", [">=", "$free.MEMORY_MB", 1024], ["in", "$label.rack", "r1", "r2"]]

`operands` defines what can be compared, `compile` parses the list, `compare` compares operands.
"""

from redsched.decide.query.compile import Query, compile_query

__all__ = ["Query", "compile_query"]
