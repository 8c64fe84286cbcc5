"""How requests are given to the client, and how its methods look in `help()`."""

import inspect
import pydoc
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from redsched.client import AsyncClient, Client
from redsched.client.async_client import AsyncClaims
from redsched.client.client import BlockingClaims
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.model.records.events import Event
from redsched.operations.fleet import Fleet
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
