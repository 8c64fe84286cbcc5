"""Errors as the members of RFC 9457 problems, and back."""

from collections.abc import Mapping
from typing import Any

from redsched import errors
from redsched.errors import RedschedError, Unavailable

ERRORS: Mapping[str, type[RedschedError]] = {
    one.problem: one
    for one in vars(errors).values()
    if isinstance(one, type)
    and issubclass(one, RedschedError)
    and one is not Unavailable
    and one.problem != RedschedError.problem
}
"""The errors by the last part of their problem type."""

MEMBERS = frozenset(("type", "title", "status", "detail"))
"""The members of a problem that are not facts of its error."""


def members(error: RedschedError) -> dict[str, Any]:
    """Return the members of a problem, including the facts of the error."""
    return {
        **error.facts,
        "type": f"/problems/{error.problem}",
        "title": error.title,
        "status": error.status,
        "detail": error.public,
    }


def error_of(problem: Mapping[str, Any]) -> RedschedError:
    """Return the error that a problem describes."""
    kind = ERRORS.get(str(problem["type"]).rpartition("/")[2], RedschedError)
    return kind(str(problem["detail"]), {name: value for name, value in problem.items() if name not in MEMBERS})
