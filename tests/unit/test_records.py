"""Records: what the client reads from a response is what the API wrote, and it is shown the same again."""

from typing import Any

import pytest
from pydantic_core import from_json, to_json

from redsched.api.examples import ANSWERS
from redsched.errors import (
    ClaimState,
    Forbidden,
    NotConfirmed,
    NoValidHost,
    QuotaExceeded,
    RedschedError,
    StaleToken,
    StoreFull,
)
from redsched.model import Claim, ClaimStatus, ReasonCount
from redsched.model.declared import Exceeded
from redsched.model.record import adapter, json_of
from redsched.model.records.bulk import BulkPage
from redsched.model.records.events import Event
from redsched.model.records.explanations import Miss
from redsched.model.records.hosts import HostView
from redsched.model.records.pages import EVENTS, PAGES, PageOf
from redsched.model.records.plans import LeavingPlan
from redsched.model.records.problems import (
    ClaimStateFacts,
    CommonFacts,
    FailedAttempt,
    ForbiddenFacts,
    NotConfirmedFacts,
    NoValidHostFacts,
    QuotaFacts,
    UnavailableFacts,
    error_of,
    members,
)
from redsched.model.records.status import StatusReport
from redsched.model.reserved_for import ReservedFor
from redsched.model.role import Role
from redsched.operations.table import BY_ROUTE

ANSWERED = {one for operation in BY_ROUTE.values() for one in operation.route.answers.values()}
RECORDS: list[Any] = [one for one in ANSWERED if one is not None and not isinstance(one, PageOf)]


@pytest.mark.parametrize("record", sorted(RECORDS, key=str), ids=lambda record: record.__name__)
def test_a_record_that_was_read_is_written_as_it_was(record: Any) -> None:
    example = from_json(to_json(ANSWERS[record.__name__]))
    read = adapter(record).validate_json(to_json(example))
    assert isinstance(read, record)
    assert json_of(read) == example


def test_fields_of_a_newer_release_are_ignored() -> None:
    example, read = ANSWERS["LeavingPlan"], adapter(LeavingPlan).validate_json
    assert read(to_json({**example, "more": 1})) == read(to_json(example))


def test_an_order_that_means_something_is_kept() -> None:
    """JSON objects keep the order of a Mapping, such as the states of claims in a status."""
    cell = {**ANSWERS["StatusReport"]["cells"][0], "claims": {"starting": 1, "active": 2}}
    read: StatusReport = adapter(StatusReport).validate_python({**ANSWERS["StatusReport"], "cells": [cell]})
    assert list(read.cells[0].claims) == ["starting", "active"]


def test_sets_and_tuples_are_restored() -> None:
    read: HostView = adapter(HostView).validate_json(to_json(ANSWERS["HostView"]))
    assert isinstance(read.traits, frozenset)
    assert isinstance(read.aggregates, frozenset)
    assert isinstance(read.unmovable, tuple)


@pytest.mark.parametrize("pages", PAGES, ids=lambda pages: pages.name)
def test_a_page_that_was_read_is_written_as_it_was(pages: PageOf[Any]) -> None:
    example = from_json(to_json(ANSWERS[pages.name]))
    read = pages.read(to_json({**example, "more": 1}))
    assert (from_json(pages.json(read)), pages.values(read)) == (example, example)
    assert all(isinstance(one, Event if pages is EVENTS else pages.record) for one in read.items)


MISS = Miss(
    "h1", {"VCPU": 3}, {"VCPU": 1}, ("1 VCPU less",), after="b", claims={"b": "web"}, kept=ReservedFor({"VCPU": 2})
)
REFUSALS = (
    NoValidHost("x", NoValidHostFacts(reasons=(ReasonCount("VCPU", 2),), nearest=(MISS,), cut_short=True)),
    NoValidHost("x", NoValidHostFacts(slot="VCPU", asked=4, rule="kept", value=2, next=(1, 2), kept=MISS.kept)),
    ClaimState("x", ClaimStateFacts(claims={"b": ClaimStatus.ENDED, "a": ClaimStatus.ACTIVE}, unknown=("c",))),
    QuotaExceeded("x", QuotaFacts(project="web", exceeded=(Exceeded("VCPU", 6, 4, 3),))),
    NotConfirmed(
        "x", NotConfirmedFacts(claim_ids=("a",), failed_attempts=(FailedAttempt("a", "h1", 7, "failed", ""),))
    ),
    Forbidden("x", ForbiddenFacts(caller="t1", role=Role.TENANT, needs=(Role.OPERATOR,))),
    StoreFull("x", UnavailableFacts(memory_bytes=2, max_memory_bytes=1)),
    StaleToken("x"),
)


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
def test_the_facts_of_an_error_that_was_read_are_those_that_it_had(error: RedschedError) -> None:
    shown = members(error)
    assert None not in shown.values()
    read = error_of(from_json(to_json(shown)))
    assert (type(read), read.detail, read.facts) == (type(error), error.detail, error.facts)


def test_what_only_a_newer_release_tells_is_left_out() -> None:
    problem = {**members(ClaimState("x", ClaimStateFacts(claim_id="a"))), "state": "dreaming", "more": {"one": 1}}
    assert error_of(problem).facts == ClaimStateFacts(claim_id="a")


def test_a_problem_of_a_refused_claim_is_its_error() -> None:
    problem = {"type": "/problems/stale-token", "title": "x", "status": 409, "detail": "too old", "claim_id": "a"}
    given = {"claim_id": "a", "project": "web", "host": "h1", "state": "active", "outcome": "refused"}
    read: BulkPage = adapter(BulkPage).validate_json(
        to_json({"results": [{**given, "problem": problem}], "next": None})
    )
    (refused,) = read.results
    assert isinstance(refused.problem, StaleToken)
    assert (refused.problem.detail, refused.problem.facts) == ("too old", CommonFacts(claim_id="a"))


def test_an_ended_claim_has_neither_group_nor_alternates_in_json() -> None:
    ended = Claim("a", "c1", "h1", ClaimStatus.ENDED, "1-a.1", {}, server_group="web", alternates=("h2",))
    shown = json_of(ended)
    assert (shown["server_group"], shown["alternates"]) == (None, None)
    read: Claim = adapter(Claim).validate_python(shown)
    assert (read.server_group, read.alternates) == ("", ())


def test_fields_of_claims_that_only_the_store_has_are_not_in_json() -> None:
    claim = Claim("a", "c1", "h1", ClaimStatus.ACTIVE, "1-a.1", {}, tried=frozenset({"h9"}), raw={"secret": "x"})
    assert not {"tried", "raw", "gang_members", "closed_reason"} & json_of(claim).keys()
