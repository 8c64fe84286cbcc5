"""The filter on a request's query."""

from collections.abc import Iterator

from redsched.decide.expression import compile_expression
from redsched.decide.rules import Rule
from redsched.model import Request

QUERY = "query"


def query(request: Request) -> Iterator[Rule]:
    """Accept hosts for which the query is true. Raises InvalidRequest if it cannot be compiled."""
    if not request.query:
        return
    compiled = compile_expression(request.query)
    yield Rule(
        QUERY,
        compiled.passes,
        lambda columns, row: f"needs {compiled.text[:200]}, and here {compiled.values_text(columns, row)}",
    )
