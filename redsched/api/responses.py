"""Responses of routes: JSON or empty."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic_core import to_json
from starlette.responses import Response

from redsched.model.claims import AcceptedClaim, Claim
from redsched.model.record import adapter
from redsched.model.records.pages import Page
from redsched.schema.pages import PageOf

T = TypeVar("T")


def answered(record: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a record as a JSON response."""
    return Response(adapter(type(record)).dump_json(record), status, headers, "application/json")


def json(text: bytes) -> Response:
    """Return JSON text as a response."""
    return Response(text, media_type="application/json")


def listed(pages: PageOf[T], page: Page[T]) -> Response:
    """Return a page of records as a JSON response."""
    return json(pages.json(page))


def answer(content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return `content` as a JSON response."""
    return Response(to_json(content), status, headers, "application/json")


def created(record: Any, location: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a new resource as a JSON response: 201 with its `Location`."""
    return answered(record, 201, {"Location": location, **(headers or {})})


def accepted(content: Mapping[str, Any], watch: str) -> Response:
    """Return 202 for work in progress, with the path that shows its progress as `watch` and as `Location`."""
    return answer({**content, "watch": watch}, 202, {"Location": watch})


def changed_claim(claim: Claim, goes_on: bool) -> Response:
    """Return a claim after a verb: 202 while a host has yet to do its part, else 200."""
    watch = claim_path(claim.claim_id)
    return answered(AcceptedClaim.of(claim, watch), 202, {"Location": watch}) if goes_on else answered(claim)


def claim_path(claim_id: str) -> str:
    """Return the path of a claim."""
    return f"/v1/claims/{claim_id}"


def nothing() -> Response:
    """Return 204 without a body."""
    return Response(status_code=204)
