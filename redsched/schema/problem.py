"""Errors as the members of an RFC 9457 problem."""

from typing import Any

from redsched.errors import RedschedError


def members(error: RedschedError) -> dict[str, Any]:
    """Return the members of a problem, including the facts of the error."""
    return {
        **error.facts,
        "type": f"/problems/{error.problem}",
        "title": error.title,
        "status": error.status,
        "detail": error.public,
    }
