"""What a response shows: the dataclass restored from it gives the same response again."""

from typing import Any

import pytest
from pydantic_core import from_json, to_json

from redsched.scheduler import BulkOutcome, BulkResult
from redsched.schema import responses
from redsched.schema.answer import Answer
from redsched.schema.examples import ANSWERS
from redsched.schema.views import view_of

PARTIAL = {"OutcomeAnswer", "BulkAnswer"}
"""Responses that leave out what the dataclass needs, or have what only the route knows."""
SHOWN = sorted(
    name
    for name in responses.__all__
    if name in ANSWERS and name not in PARTIAL and getattr(responses, name).__dict__.get("shown") is not None
)


def read(name: str, content: Any) -> Answer:
    model: type[Answer] = getattr(responses, name)
    return model.model_validate_json(to_json(content), extra="allow")


def as_json(content: Any) -> Any:
    return from_json(to_json(content))


@pytest.mark.parametrize("name", SHOWN)
def test_a_response_is_that_of_what_it_shows(name: str) -> None:
    model, example = getattr(responses, name), ANSWERS[name]
    assert as_json(model.of(view_of(read(name, example)))) == as_json(model.of(view_of(read(name, example))))
    shown = as_json(model.of(view_of(read(name, example))))
    given = as_json(example)
    assert {field: shown.get(field) for field in given} == given


def test_most_responses_of_the_api_are_covered() -> None:
    assert "ExplanationAnswer" in SHOWN


def test_a_refusal_in_a_bulk_result_is_its_error() -> None:
    problem = {"type": "/problems/stale-token", "title": "x", "status": 409, "detail": "too old", "current": "1-a.2"}
    given = {
        "claim_id": "a",
        "project": "web",
        "host": "h1",
        "state": "active",
        "outcome": "refused",
        "problem": problem,
    }
    view: BulkResult = view_of(read("BulkClaimAnswer", given))
    assert (view.claim.claim_id, view.outcome) == ("a", BulkOutcome.REFUSED)
    assert view.error is not None
    assert (view.error.problem, view.error.detail, view.error.facts["current"]) == ("stale-token", "too old", "1-a.2")
