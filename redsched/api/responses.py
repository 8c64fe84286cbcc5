"""Answers of routes: JSON, or nothing."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response


def answer(content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`content` as a JSON answer."""
    return Response(to_json(content), status, headers, "application/json")


def created(
    content: Mapping[str, Any], location: str, new: bool = True, headers: Mapping[str, str] | None = None
) -> Response:
    """201 with the `Location` of what is new; 200 for what was there before."""
    if not new:
        return answer(content, 200, headers)
    return answer(content, 201, {"Location": location, **(headers or {})})


def accepted(content: Mapping[str, Any], watch: str) -> Response:
    """202: it goes on, and `watch` (also the `Location`) is the path that tells how far it is."""
    return answer({**content, "watch": watch}, 202, {"Location": watch})


def changed_claim(content: Mapping[str, Any], claim_id: str, goes_on: bool) -> Response:
    """A claim after a verb: 202 while a host has yet to do its part, else 200."""
    return accepted(content, claim_path(claim_id)) if goes_on else answer(content)


def claim_path(claim_id: str) -> str:
    """Where a claim is read."""
    return f"/v1/claims/{claim_id}"


def nothing() -> Response:
    """204: done, and nothing to say."""
    return Response(status_code=204)
