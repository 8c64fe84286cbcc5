"""Answers of routes: JSON, or nothing."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response


def answer(content: Mapping[str, Any], status: int = 200) -> Response:
    """`content` as a JSON answer."""
    return Response(to_json(content), status, media_type="application/json")


def nothing() -> Response:
    """204: done, and nothing to say."""
    return Response(status_code=204)
