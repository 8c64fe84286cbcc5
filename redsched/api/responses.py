"""Responses of routes: JSON or empty."""

from collections.abc import Mapping
from typing import Any, TypeVar

from starlette.responses import Response

from redsched.model.claims import AcceptedClaim, Claim
from redsched.model.record import adapter
from redsched.model.records.pages import Page, PageOf
from redsched.model.records.service import Accepted, Ending

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


def created(record: Any, location: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a new resource as a JSON response: 201 with its `Location`."""
    return answered(record, 201, {"Location": location, **(headers or {})})


def accepted(record: Accepted | AcceptedClaim | Ending) -> Response:
    """Return 202 for work in progress, with the path that shows its progress as `Location` too."""
    return answered(record, 202, {"Location": record.watch})


def changed_claim(claim: Claim, goes_on: bool) -> Response:
    """Return a claim after a verb: 202 while a host has yet to do its part, else 200."""
    return accepted(AcceptedClaim.of(claim, claim_path(claim.claim_id))) if goes_on else answered(claim)


def claim_path(claim_id: str) -> str:
    """Return the path of a claim."""
    return f"/v1/claims/{claim_id}"


def nothing() -> Response:
    """Return 204 without a body."""
    return Response(status_code=204)
