"""The expression in the query of a request: Nova's JsonFilter, compiled to operations on columns.

    ["and", [">=", "$free.MEMORY_MB", 1024], ["in", "$label.rack", "r1", "r2"]]

`operands` defines what can be compared, `compile` parses the list, `compare` compares operands.
"""

from redsched.decide.expression.compile import Expression, compile_expression

__all__ = ["Expression", "compile_expression"]
