"""The filter about a request's query."""

from collections.abc import Iterator

from redsched.decide.query import compile_query
from redsched.decide.rules import Rule
from redsched.model import Request

QUERY = "query"


def query(request: Request) -> Iterator[Rule]:
    """Hosts for which the query is true. Raises InvalidRequest for one that cannot be compiled."""
    if not request.query:
        return
    compiled = compile_query(request.query)
    yield Rule(
        QUERY,
        compiled.passes,
        lambda columns, row: f"needs {compiled.text[:200]}, and here {compiled.said(columns, row)}",
    )
