"""Requests as canonical text and back: the text that the store keeps suffices to place the request's claims again."""

import hashlib
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_core import to_json

from redsched.errors import InvalidRequest
from redsched.model import GangMember, GangOnExit, Numa, NumaCell, OnExit, Request, Spread
from redsched.model.json_codec import as_text
from redsched.requests.parsing import parse
from tests.support.fleets.filter_fleets import filtered_request
from tests.support.fleets.gang_fleets import random_call, random_tiny
from tests.support.fleets.pool_fleets import pool_requests
from tests.support.fleets.random_fleets import requests, seeds


def gang(seed: int) -> Request:
    rng = Random(seed)
    return random_call(rng, random_tiny(rng), rng.choice(("all", "incremental")))


anything = st.one_of(requests(2, 3), seeds.map(filtered_request), pool_requests, seeds.map(gang))


@given(anything)
def test_a_request_comes_back_whole(request: Request) -> None:
    """It keeps its digest and its shape; options that affect only the answer, such as `claim_ids`, are not kept."""
    again = Request.from_canonical(request.canonical())
    assert (again.digest(), again.shape()) == (request.digest(), request.shape())
    assert [one.request.shape() for one in again.members] == [one.request.shape() for one in request.members]
    assert again.canonical() == request.canonical()


def as_in_rest(member: GangMember) -> GangMember:
    """Return a member without a policy of its own: in bodies, only the call has one."""
    return replace(member, request=replace(member.request, policy=""))


@given(anything)
def test_a_request_is_the_same_after_a_way_over_rest(request: Request) -> None:
    """Its body, read as the API reads it, gives a request with its digest, its shape and its body."""
    request = replace(request, members=tuple(map(as_in_rest, request.members)))
    again = parse(to_json(request.body()), Request)
    assert (again.digest(), again.shape(), again.body()) == (request.digest(), request.shape(), request.body())


def test_a_body_has_what_concerns_the_answer_alone() -> None:
    request = Request(
        {"VCPU": 1}, claim_ids=("a",), alternates=2, until="active", queue_timeout_s=5, reserve=True, claim=False
    )
    assert parse(to_json(request.body()), Request) == request


@given(st.lists(requests(2, 3), min_size=2, max_size=4))
def test_requests_share_a_text_only_where_they_say_the_same(some: list[Request]) -> None:
    """The cached text of one request is never returned for another."""
    for request in [*some, *some]:
        canonical = as_text(request.json_fields())
        digest = hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()
        assert (request.canonical(), request.digest()) == (canonical, digest)


def test_parts_come_back_as_what_they_were() -> None:
    request = Request(
        numa=Numa((NumaCell(2, 512),)),
        query=("and", (">=", "$free.VCPU", 2), ("=", "$label.a", "b")),
        same_subtree=(),
        count=2,
        project="web",
        until="active",
        queue_timeout_s=5,
        claim_ids=("a", "b"),
        on_exit=OnExit.KEEP,
    )
    assert Request.from_canonical(request.canonical()) == Request(
        numa=request.numa, query=request.query, count=2, project="web", on_exit=OnExit.KEEP
    )
    whole = Request(members=(GangMember("db", Request({"VCPU": 1}, count=2)),), project="web")
    assert Request.from_canonical(whole.canonical()) == whole


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a Request in JSON"),
        ("[]", "not a Request in JSON"),
        ('{"resources": {"VCPU": 1}, "colour": "red"}', "colour of Request is not known to this release"),
        ('{"resources": {"VCPU": 0}}', "VCPU must be a whole number from 1"),
        ('{"numa": {"policy": "shared"}}', "not a Request in JSON"),
    ],
)
def test_what_is_no_request_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidRequest, match="not a Request in JSON") as refused:
        Request.from_canonical(text)
    assert says in refused.value.detail


def test_what_becomes_of_a_claim_is_part_of_what_was_asked_for() -> None:
    """`on_exit` changes the digest but not the shape. The default is omitted, so older requests keep their digest."""
    plain, keep = Request({"VCPU": 1}), Request({"VCPU": 1}, on_exit=OnExit.KEEP)
    assert plain.digest() != keep.digest()
    assert plain.shape() == keep.shape()
    assert "on_exit" not in plain.canonical()
    with pytest.raises(InvalidRequest, match="on_exit must be one of release, replace, keep, not 'restart'"):
        Request({"VCPU": 1}, on_exit="restart")  # type: ignore[arg-type]


def test_what_becomes_of_an_active_gang_is_part_of_what_was_asked_for() -> None:
    """`gang_on_exit` changes the digest but not the shape. By default nothing is added."""
    plain = Request({"VCPU": 1}, count=2, on_exit=OnExit.REPLACE)
    again = replace(plain, gang_on_exit=GangOnExit.REPLACE)
    assert plain.digest() != again.digest()
    assert plain.shape() == again.shape()
    assert "gang_on_exit" not in plain.canonical()
    assert Request.from_canonical(again.canonical()) == again


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"gang_on_exit": "restart"}, "must be one of keep, release, replace, not 'restart'"),
        ({"mode": "incremental"}, "whose mode is all, not incremental: leave it out"),
        ({"spread": (Spread("zone"),)}, "cannot be combined with a spread that is required"),
        ({"on_exit": OnExit.RELEASE}, "requires on_exit replace, not release"),
    ],
)
def test_what_cannot_become_of_a_gang_is_refused(wrong: dict[str, Any], says: str) -> None:
    right: dict[str, Any] = {"count": 2, "on_exit": OnExit.REPLACE, "gang_on_exit": GangOnExit.REPLACE}
    assert Request({"VCPU": 1}, **right)
    with pytest.raises(InvalidRequest, match=says):
        Request({"VCPU": 1}, **(right | wrong))
