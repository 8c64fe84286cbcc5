"""The query of a request: Nova's JsonFilter, compiled to operations on columns.

    ["and", [">=", "$free.MEMORY_MB", 1024], ["in", "$label.rack", "r1", "r2"]]

`operands` says what can be compared, `compile` reads the list, `compare` holds operands against each other.
"""

from redsched.decide.query.compile import Query, compile_query

__all__ = ["Query", "compile_query"]
