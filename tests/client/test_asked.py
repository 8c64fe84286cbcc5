"""How requests are given to the client, and how its methods look in `help()`."""

import inspect
import pydoc
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import pytest

from redsched.client import AsyncClient, Client
from redsched.client.async_client import AsyncClaims
from redsched.client.client import BlockingClaims
from redsched.errors import InvalidRequest, RedschedError
from redsched.model import Request
from redsched.model.conditions import EXISTS, IfMatch
from redsched.model.filters import ClaimFilter, EventFilter
from redsched.model.records.events import Event
from redsched.operations.claims import Bulk, Claims
from redsched.operations.fleet import Fleet
from redsched.operations.hosts import Hosts
from redsched.operations.operation import BaseOperation, Sent

EVENTS_PAGE = Path(__file__).parents[2] / "docs" / "events.md"


def sent(operation: BaseOperation[Any, Any], *args: Any, **named: Any) -> Sent:
    return operation.sent(operation.arguments(*args, **named))


def test_amounts_and_fields_are_a_request() -> None:
    asked = Request({"VCPU": 2}, project="web", until="active", count=3)
    assert sent(Fleet.select, {"VCPU": 2}, project="web", until="active", count=3).body == asked.body()
    assert sent(Fleet.dry_run, {"VCPU": 2}, project="web").body == {
        **Request({"VCPU": 2}, project="web").body(),
        "claim": False,
    }
    assert sent(Fleet.explain, {"VCPU": 2}, "h1", project="web").body == Request({"VCPU": 2}, project="web").body()


def test_fields_replace_those_of_a_request() -> None:
    asked = Request({"VCPU": 2}, project="web", lease_s=10)
    call = sent(Fleet.select, asked, until="active", project="other")
    assert call.body == Request({"VCPU": 2}, project="other", lease_s=10, until="active").body()
    assert call.waits_s > sent(Fleet.select, asked).waits_s
    assert asked.until == "claimed"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"untill": "active"}, "a request has no field 'untill': did you mean until?"),
        ({"zone": "az1"}, "a request has no field 'zone': did you mean zones?"),
        ({"until": "running"}, "until must be"),
    ],
)
def test_a_wrong_field_is_named(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(problem)):
        sent(Fleet.select, {"VCPU": 2}, **given)


@pytest.mark.parametrize("of", [Client, AsyncClient, BlockingClaims, AsyncClaims])
def test_help_prints_methods_as_they_are_called(of: type[Any]) -> None:
    """With `self`, their own names and results, and names of types without modules; every method has a text."""
    text = pydoc.plain(pydoc.render_doc(of))
    own = [name for name, one in vars(of).items() if name[0] != "_" and callable(getattr(of, name))]
    for name in own:
        [line] = re.findall(rf"^ \|  (?:async )?{name}\(.*$", text, re.MULTILINE)
        assert f"{name}(self" in line
        assert not re.search(r"redsched\.|collections\.|-> Call\[", line), line
        assert inspect.getdoc(getattr(of, name))


def test_help_prints_a_method_of_an_object_without_self() -> None:
    with Client("http://localhost") as client:
        text = pydoc.plain(pydoc.render_doc(client.claims.get))
    assert "get(claim_id: str) -> Claim" in text


def test_a_method_without_a_client_says_so() -> None:
    with pytest.raises(TypeError, match="this is a method of a client: open one"):
        Client.select({"VCPU": 1})


def test_help_describes_each_field_of_a_request() -> None:
    text = pydoc.plain(pydoc.render_doc(Request))
    assert "until: Literal['claimed', 'active'] = 'claimed'" in text
    assert "on_exit: OnExit = 'release'" in text
    described = inspect.getdoc(Request.__init__) or ""
    assert [line.partition(":")[0] for line in described.splitlines()] == list(inspect.signature(Request).parameters)
    assert "FieldInfo" not in text.partition("Data descriptors")[0]


def test_the_documented_fields_of_an_event_are_those_of_the_client() -> None:
    table = EVENTS_PAGE.read_text().split("| field | meaning |")[1].split("\n\n")[0]
    properties = {name for name, one in vars(Event).items() if isinstance(one, property)}
    shown = {one.name for one in fields(Event)} - {"facts"} | properties
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == shown


def test_unowned_claims_are_asked_for_as_such() -> None:
    """The owner '' is that of claims without one: left out, the filter would be for those of everybody."""
    query = sent(Bulk.release, ClaimFilter(project="web", owner=("",))).query
    assert query == (("project", "web"), ("owner", ""), ("limit", "1000"))


def test_a_lease_of_no_time_is_sent_and_refused_for_that() -> None:
    """Left out, it would be refused as a field that is missing."""
    arguments = Bulk.renew.arguments(ClaimFilter(project="web"), 0)
    assert ("lease_s", "0") in Bulk.renew.sent(arguments).query


def test_what_can_be_read_once_is_sent_with_each_page() -> None:
    arguments = Claims.list.arguments(project=iter(["web", "ops"]))
    assert Claims.list.sent(arguments).query == Claims.list.sent(arguments).query
    assert ("project", "ops") in Claims.list.sent(arguments).query


@pytest.mark.parametrize(
    ("condition", "header"),
    [("a", '"a"'), (("a", "b"), '"a", "b"'), (EXISTS, "*")],
)
def test_one_tag_or_several_are_a_condition(condition: IfMatch, header: str) -> None:
    assert sent(Hosts.enable, "h1", if_match=condition).headers == {"If-Match": header}


def test_a_value_is_sent_although_it_is_the_default() -> None:
    """Defaults of an API may change with its release."""
    assert sent(Claims.renew, "a", "1-a.1", 120).body == {"token": "1-a.1", "lease_s": 120}
    assert sent(Hosts.disable, "h1").body is None
    assert sent(Hosts.list, limit=0).query == (("limit", "0"),)


async def test_a_reply_that_is_not_redscheds_is_an_error() -> None:
    replies = {"/v1/claims/a": b"<html>", "/v1/events": b'{"events": [{}], "next": null}'}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=replies[request.url.path])

    async with AsyncClient("http://localhost", transport=httpx.MockTransport(answer)) as client:
        for call in (client.claims.release("a"), client.events.newest()):
            with pytest.raises(RedschedError, match="not one that this release reads"):
                await call


async def test_a_filter_that_only_a_scheduler_has_is_refused() -> None:
    async with AsyncClient("http://localhost") as client:
        with pytest.raises(InvalidRequest, match="of_projects"):
            await client.events.newest(wanted=EventFilter(of_projects=frozenset({"web"})))
        with pytest.raises(TypeError):
            await client.claims.release(None)  # type: ignore[arg-type]
