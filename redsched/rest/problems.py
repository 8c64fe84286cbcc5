"""Problems (RFC 9457) of the API as the errors that its library raises."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redsched.problems import MEMBERS


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem: the last part of its type, its text, and its further members."""

    kind: str
    detail: str
    facts: Mapping[str, Any]


def problem_of(content: bytes) -> Problem | None:
    """Return the problem in the body of a reply; None if it has none: another server answered, such as a proxy."""
    try:
        found = json.loads(content)
        kind, detail = str(found["type"]).rpartition("/")[2], str(found["detail"])
    except (ValueError, TypeError, KeyError):
        return None
    return Problem(kind, detail, {name: value for name, value in found.items() if name not in MEMBERS})


def reason_of(error: Exception) -> str:
    """Return why a connection failed, as text that is never empty."""
    return str(error) or type(error).__name__
