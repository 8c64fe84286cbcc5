"""Names of hosts in texts and errors, wherever they come from."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request

from redsched.api.access.callers import CALLER
from redsched.api.access.redact import BODY, OWN_HOSTS, Redactor, hide_in_text
from redsched.auth.caller import UNRESTRICTED, Caller
from redsched.errors import ClaimState, NoValidHost, RedschedError
from redsched.model import (
    Claim,
    ClaimStatus,
    DecisionNote,
    FromWhy,
    HostStatus,
    Placement,
    RankedHost,
    Reason,
    ReasonCount,
)
from redsched.model.records.changes import Change
from redsched.model.records.explanations import Miss
from redsched.model.records.hosts import FailedMoves, HostView, UnmovableClaim
from redsched.model.records.problems import ClaimStateFacts, NoValidHostFacts
from redsched.model.role import Role

HOSTS = frozenset(("h1", "h2", "node-3.rack"))
TENANT = Caller("web", Role.TENANT, projects=frozenset(("web",)))


def redactor(caller: Caller = TENANT, body: bytes = b"", own: frozenset[str] = frozenset(("h1",))) -> Redactor:
    """Return the redactor of a request about a claim on h1, in a fleet of these hosts."""
    state = SimpleNamespace(scheduler=SimpleNamespace(knows_host=HOSTS.__contains__))
    scope: dict[str, Any] = {"type": "http", "path": "/v1/claims/web-1", "query_string": b"", "headers": []}
    app = SimpleNamespace(state=state)
    return Redactor(Request(cast(Any, {**scope, "app": app, CALLER: caller, OWN_HOSTS: own, BODY: body})))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("on its way to h2", "on its way to a host"),
        ("on h2.", "on a host."),
        ("on 'node-3.rack': busy", "on 'a host': busy"),
        ("after h2:web-1, (h2)", "after a host:web-1, (a host)"),
        ("h20 and xh2 and h2-b are others", "h20 and xh2 and h2-b are others"),
        ("nearest for db h9: 3 VCPU less", "nearest for db a host: 3 VCPU less"),
    ],
)
def test_each_word_that_is_a_host_is_hidden(text: str, shown: str) -> None:
    assert hide_in_text(text, HOSTS.__contains__) == shown


def test_all_texts_of_an_error_are_searched() -> None:
    """Its own kind stays, and so does the error itself: others may log it."""
    facts = ClaimStateFacts(state=ClaimStatus.CLAIMED, uncounted=("h2",), claims={"h2": ClaimStatus.ENDED}, members=3)
    error = ClaimState("on its way to h2 from h1", facts)
    shown = redactor().error(error)
    assert (type(shown), shown.detail, str(shown)) == (ClaimState, "on its way to a host from h1", shown.detail)
    assert shown.facts == replace(facts, uncounted=("a host",), claims={"a host": ClaimStatus.ENDED})
    assert error.detail == "on its way to h2 from h1"


def test_the_public_text_is_searched_too() -> None:
    error = RedschedError("redis://h2 is down", public="h2 is down")
    assert redactor().error(error).public == "a host is down"


def test_nearest_misses_lose_their_hosts_and_claims() -> None:
    near = Miss("gone", {"VCPU": 4}, {"VCPU": 1}, ("with host h2 allowed",), after="db-1", claims={"db-1": "db"})
    facts = NoValidHostFacts(nearest=(near,))
    shown = redactor().error(NoValidHost("none fits; nearest gone: 3 VCPU less", facts))
    assert "gone" not in shown.detail
    [found] = shown.facts.nearest
    assert found == replace(near, host="", changes=("with host a host allowed",), after="", claims={})


def test_words_of_the_request_are_repeated() -> None:
    assert redactor(body=b'{"groups": [{"name": "h2"}]}').text("in group h2") == "in group h2"


def test_those_who_see_hosts_see_them() -> None:
    for caller in (UNRESTRICTED, Caller("r", Role.READER), Caller("w", Role.TENANT, sees_hosts=True)):
        assert redactor(caller).text("on h2") == "on h2"


def test_a_decision_loses_its_ranking_and_agents_see_those_on_their_hosts() -> None:
    """As explanations do. The counts by reason, and which candidate was taken, tell nothing of other hosts."""
    ranked = (RankedHost("h1", 0.5, {"spread": 0.5}), RankedHost("h2", 0.25, {"spread": 0.25}))
    decision = DecisionNote("1-a.1", "h1", 1, 1, 2, (ReasonCount("VCPU", 1),), ranked=ranked)
    claim = Claim("web-1", "c1", "h1", ClaimStatus.ACTIVE, "1-a.1", {}, decision=decision)
    hidden = replace(decision, ranked=())
    assert redactor().claim(claim).decision == hidden
    assert redactor(Caller("r", Role.READER)).claim(claim).decision == decision
    assert redactor(Caller("a", Role.AGENT, hosts=frozenset({"h1"}))).claim(claim).decision == hidden
    assert redactor(Caller("b", Role.AGENT, hosts=frozenset({"h2"}))).claim(claim).decision is None


def test_an_agent_does_not_see_from_which_host_a_claim_has_come() -> None:
    place = Placement("1-a.2", "1-a.2", "1-a.1", "h1", ClaimStatus.ACTIVE, {}, from_host="h2", from_why=FromWhy.DRAINED)
    claim = Claim("web-1", "c1", "h1", ClaimStatus.ACTIVE, "1-a.2", {}, placements=(place,))
    agent = redactor(Caller("a", Role.AGENT, hosts=frozenset({"h1"}))).claim(claim)
    assert [(one.from_host, one.from_why) for one in agent.placements] == [("", FromWhy.DRAINED)]
    assert redactor().claim(claim).placements[0].from_host == "h2"


def test_a_reason_may_name_the_host_that_gave_it() -> None:
    reason = Reason(1, "h2", "1-a.1", "h2: exit code 1 near node-3.rack", "failed")
    claim = Claim("web-1", "c1", "h1", ClaimStatus.PENDING, "1-a.1", {}, reason=reason, alternates=("node-3.rack",))
    shown = redactor().claim(claim)
    assert shown.reason is not None
    assert (shown.reason.text, shown.alternates) == ("h2: exit code 1 near a host", ())


def test_a_change_shows_its_claim_alone() -> None:
    fields = {"claim": "web-1", "claimed.VCPU": "7", "reason": "h1 left for h2", "held.VCPU": "1", "alive": "1"}
    shown = redactor().change(Change("c1", 7, "host", "h1", 3, "moved", fields))
    assert shown.fields == {"claim": "web-1", "reason": "h1 left for a host", "held.VCPU": "1"}


def test_the_agent_of_a_host_is_not_shown_what_its_claims_found_on_others() -> None:
    host = HostView(
        "h1", "c1", "az1", HostStatus.DRAINING, True, True, 1, 30, {}, frozenset(), {}, {}, 2,
        draining="move",
        unmovable=(UnmovableClaim("web-1", "none of 3 hosts can take 1 VCPU; nearest h2: 1 VCPU less"),),
        failed_moves=(FailedMoves("web-2", 1, 5, "the disk of h2 is full: /srv/db"),),
    )  # fmt: skip
    shown = redactor(Caller("of-h1", Role.AGENT, hosts=frozenset(("h1",)))).host(host)
    assert shown.unmovable == (UnmovableClaim("web-1", "none of 3 hosts can take 1 VCPU; nearest a host: 1 VCPU less"),)
    assert shown.failed_moves == (FailedMoves("web-2", 1, 5, ""),)
    assert redactor(UNRESTRICTED).host(host) is host
