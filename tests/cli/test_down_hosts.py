"""Hosts that are down or lost, and the claims that are there, as lists, pages and the status show them."""

import pytest
import redis

from tests.cli.conftest import Redsched
from tests.cli.parts import announce

BOTH_LINKS = True
HOURS = 5


@pytest.fixture
def down(redsched: Redsched, store: str) -> Redsched:
    """The command line to a fleet whose host h1 has been down for some hours, with the active claim web."""
    token = (
        redsched("select", "VCPU=1", "--host", "h1", "--id", "web", "--json").check().json()["selections"][0]["token"]
    )
    redsched("claim", "confirm", "web", "--token", token).check()
    with redis.Redis.from_url(store, protocol=2, decode_responses=True) as client:
        announce(client)
        ended_ms = (client.time()[0] - HOURS * 3600) * 1000
        client.hset("rs:{c1}:host:h1", mapping={"alive": "0", "alive_until_ms": ended_ms})
        client.zadd("rs:{c1}:hosts", {"h1": ended_ms})
    return redsched


def test_a_host_that_is_down_says_since_when(down: Redsched) -> None:
    rows = [line.split("\t") for line in down("host", "list").check().output.splitlines()]
    status = rows[0].index("STATUS")
    assert [(row[0], row[status]) for row in rows[1:]] == [("h1", "down 5h"), ("h2", "up")]
    assert "  down 5h  1 claim" in down("host", "show", "h1").check().output
    down("host", "drain", "h1").check()
    assert "  down 5h, draining  1 claim" in down("host", "show", "h1").check().output
    found = down("host", "show", "h1", "--json").check().json()
    assert (found["condition"], found["status"], found["down_since_ms"] > 0) == ("down", "draining", True)


def test_a_claim_is_seen_through_its_host(down: Redsched) -> None:
    """The stored state remains what it is."""
    assert "\tactive, host down 5h\t" in down("claim", "list").check().output
    assert "\tactive, host down 5h\t" in down("claim", "show", "web").check().output
    found = down("claim", "show", "web", "--json").check().json()
    assert (found["state"], found["host_condition"], found["host_down_since_ms"] > 0) == ("active", "down", True)
    down("host", "write-off", "h1", "--yes").check()
    assert "\tactive, host lost\t" in down("claim", "list").check().output
    found = down("claim", "list", "--json").check().json()["claims"][0]
    assert (found["state"], found["host_condition"], found["host_down_since_ms"]) == ("active", "lost", None)


@pytest.mark.parametrize("how", ["evacuate", "move"])
def test_a_claim_that_waits_for_another_place_says_so_and_what_it_lacks(down: Redsched, store: str, how: str) -> None:
    if how == "evacuate":
        down("host", "write-off", "h1", "--evacuate", "--yes").check()
        state, why = "active, host lost, waits for another place", "h1 was written off"
    else:
        with redis.Redis.from_url(store, protocol=2, decode_responses=True) as client:
            until_ms = (client.time()[0] + HOURS * 3600) * 1000
            client.hset("rs:{c1}:host:h1", mapping={"alive": "1", "alive_until_ms": until_ms})
            client.zadd("rs:{c1}:hosts", {"h1": until_ms})
        down("host", "drain", "h1", "--move").check()
        state, why = "active, waits for another place", "h1 is being drained"
    assert f"\t{state}\t" in down("claim", "list").check().output
    lacks = "the request names only h1, and the claim is there or has failed there"
    assert f"waits for another place, as {why}: {lacks}" in down("claim", "show", "web").check().output.splitlines()
    found = down("claim", "show", "web", "--json").check().json()
    assert (found["state"], found["leaving"], found["unmovable"]) == ("active", how, lacks)
    if how == "evacuate":
        assert f". web: {lacks}" in " ".join(down("status").output.split())


def test_a_claim_on_a_host_that_is_up_has_its_state_alone(redsched: Redsched) -> None:
    redsched("select", "VCPU=1", "--host", "h1", "--id", "web").check()
    assert "\tclaimed\t" in redsched("claim", "list").check().output
    found = redsched("claim", "show", "web", "--json").check().json()
    assert (found["host_condition"], found["host_down_since_ms"]) == ("up", None)


def test_the_status_names_the_claims_and_what_to_do(down: Redsched) -> None:
    ran = down("status")
    assert ran.exit_code == 1
    assert "with 1 claim (web)" in ran.output
    down("host", "write-off", "h1", "--yes").check()
    ran = down("status")
    assert ran.exit_code == 1
    assert "! cell c1: 1 host is written off, and still has 1 claim (web)" in ran.output
    assert "    redsched host write-off h1 --evacuate\n    redsched claim release --host h1\n" in ran.output


ENABLE = "`redsched host enable {}` lets it take claims again"


@pytest.mark.usefixtures("needs_store")  # an API has not seen in the feed that the host is down
def test_a_refusal_says_that_a_named_host_is_down_and_what_to_do(down: Redsched) -> None:
    assert down("select", "VCPU=1", "--host", "h1").check_failed(3).endswith("; h1 is down 5h: start its agent")
    down("host", "disable", "h1", "--reason", "fan broken").check()
    said = down("select", "VCPU=1", "--host", "h1").check_failed(3)
    assert said.endswith(f"; h1 is down 5h, disabled (fan broken): start its agent; then {ENABLE.format('h1')}")
    down("host", "write-off", "h1", "--yes").check()
    said = down("select", "VCPU=1", "--host", "h1").check_failed(3)
    assert said.endswith(f": start its agent; then {ENABLE.format('h1')}")


@pytest.mark.parametrize(
    "command", [("select", "VCPU=1"), ("select", "VCPU=1", "--dry-run"), ("run", "VCPU=1", "--detach", "--", "true")]
)
def test_a_refusal_says_why_a_named_host_takes_no_claims_and_what_to_do(
    redsched: Redsched, command: tuple[str, ...]
) -> None:
    redsched("host", "disable", "h2", "--reason", "fan broken").check()
    said = f"h2 is disabled (fan broken): {ENABLE.format('h2')}"
    assert redsched(*command[:2], "--host", "h2", *command[2:]).check_failed(3).endswith(f"; {said}")
    assert said in " ".join(redsched("explain", "VCPU=1", "--host", "h2").output.split())
    assert "unknown host 'h3'" in redsched(*command[:2], "--host", "h3", *command[2:]).check_failed(3)
