"""Which losses of an answered claim break the promise of the answer: a lease that expires on time does not."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from redsched.agent.run import run
from redsched.aio import end
from redsched.errors import Conflict
from redsched.model import ClaimStatus, EndReason, Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.client.scripts import load_all
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.faults.suite.checks.ledger import Ledger, Owned
from tests.faults.suite.checks.losses import count_lost, note_active
from tests.faults.suite.checks.promises import HOST_LEASE_MS, Excuses, broken
from tests.faults.suite.checks.view import View, view_of
from tests.faults.suite.checks.watcher import Gone, Watcher
from tests.faults.suite.faults import ALL, BY_NAME
from tests.faults.suite.plan import Round, Strike, children
from tests.faults.suite.processes.agent_process import hosts_of
from tests.faults.suite.reporting.result import Result
from tests.faults.suite.world import AGENT as AGENT_SETTINGS, SCHEDULER as SCHEDULER_SETTINGS
from tests.support.processes.proxy import Fault, Proxy, proxy
from tests.support.waiting import wait_until

HOST, AGENT = "agent-1-host-3", "agent-1"
ANSWERED, LEASE_ENDS = 1_000_000, 1_005_000
HELD_UP = Excuses(held_up=frozenset({AGENT}))


def owned(**other: object) -> Owned:
    told = {"until": "claimed", "answered_ms": ANSWERED, "expires_ms": LEASE_ENDS} | other
    return Owned("s0", HOST, "2-b.7", **told)  # type: ignore[arg-type]


def gone(at_ms: int, seen_ms: int, state: str = "starting", lease_ms: int = LEASE_ENDS, host: str = HOST) -> Gone:
    """Return a loss: the claim was last seen with that lease, and had ended at the next read."""
    return Gone("expired", {"state": state, "host": host, "expires_at_ms": str(lease_ms)}, seen_ms, at_ms)


def test_a_lease_that_ran_out_while_the_agent_was_held_up_breaks_nothing() -> None:
    """The agent accepts the placement at once, then waits a second each for two replies: its lease of 2 s expires."""
    late = gone(at_ms=1_002_300, seen_ms=1_002_100, lease_ms=1_002_200)
    assert broken("a", owned(), late, "expired", HELD_UP) == ""


def test_a_lease_that_ran_out_with_nothing_to_hold_its_agent_up_is_reported() -> None:
    late = gone(at_ms=1_002_300, seen_ms=1_002_100, lease_ms=1_002_200)
    others = Excuses(held_up=frozenset({"agent-2"}))
    assert broken("a", owned(), late, "expired", others) == "no fault of the round held agent-1 up"
    assert broken("a", owned(), None, "expired", others) == "no fault of the round held agent-1 up"


def test_it_is_the_agent_of_where_the_claim_was_last_that_counts() -> None:
    moved = gone(at_ms=1_002_300, seen_ms=1_002_100, lease_ms=1_002_200, host="agent-2-host-0")
    assert broken("a", owned(), moved, "expired", HELD_UP) == "no fault of the round held agent-2 up"


def test_a_claim_that_ends_before_its_lease_does_is_told_whoever_was_held_up() -> None:
    early = gone(at_ms=LEASE_ENDS - 300, seen_ms=LEASE_ENDS - 500, state="claimed")
    assert broken("a", owned(), early, "expired", HELD_UP) == "it ended 300 ms before its lease could run out"


def test_a_claim_may_have_been_accepted_between_two_looks_and_expired_by_its_hosts_lease() -> None:
    """The watcher did not see the acceptance, so the lease that it saw is not the one that expired."""
    unseen = gone(at_ms=ANSWERED + HOST_LEASE_MS + 100, seen_ms=ANSWERED, state="claimed")
    assert broken("a", owned(), unseen, "expired", HELD_UP) == ""


def test_an_answer_that_comes_after_its_lease_has_run_out_promises_nothing() -> None:
    late = owned(answered_ms=LEASE_ENDS)
    in_time = owned(answered_ms=LEASE_ENDS - 1)
    ran_out = gone(at_ms=LEASE_ENDS + 200, seen_ms=LEASE_ENDS, state="claimed")
    assert broken("a", late, ran_out, "expired", Excuses()) == ""
    assert broken("a", in_time, ran_out, "expired", Excuses()) == "no fault of the round held agent-1 up"


@pytest.mark.parametrize("kept", [owned(until="active"), owned(was_active=True)])
def test_what_was_active_is_never_lost(kept: Owned) -> None:
    anything = Excuses(frozenset({"expired", "forgotten", "failed"}), HELD_UP.held_up)
    for end_reason in ("expired", "forgotten", "failed"):
        assert broken("a", kept, None, end_reason, anything) == "it was active, and stays until it is given back"


def test_what_faults_may_lose_is_lost_and_nothing_else() -> None:
    wiped = Excuses(ends=frozenset({"forgotten"}))
    assert broken("a", owned(), None, "forgotten", wiped) == ""
    assert broken("a", owned(), None, "failed", wiped) == "no fault of the round may lose a claim as failed"


def test_a_placement_that_was_forgotten_leaves_the_claim_at_the_one_before() -> None:
    """The claim had failed or was shelved on the earlier host, and now ends for that reason."""
    wiped = Excuses(ends=frozenset({"forgotten"}))
    before = gone(at_ms=1_002_300, seen_ms=1_002_100, state="active", host="agent-2-host-8")
    assert broken("a", owned(), before, "failed", wiped) == ""
    assert broken("a", owned(), before, "failed", Excuses()) != ""
    here = gone(at_ms=1_002_300, seen_ms=1_002_100, state="active")
    assert broken("a", owned(), here, "failed", wiped) == "no fault of the round may lose a claim as failed"


def test_a_claim_that_failed_where_it_was_held_up_and_found_no_other_place_breaks_nothing() -> None:
    fell = replace(gone(at_ms=1_002_300, seen_ms=1_002_100, state="pending"), tried=frozenset({HOST}))
    assert broken("a", owned(), fell, "failed", HELD_UP) == ""
    assert broken("a", owned(), fell, "failed", Excuses(held_up=frozenset({"agent-2"}))) != ""


def test_one_of_a_gang_may_fall_with_another_whose_lease_ran_out() -> None:
    assert broken("s0-gang-1-0", owned(), None, "failed", HELD_UP) == ""
    assert broken("s0-one-1", owned(), None, "failed", HELD_UP) != ""
    assert broken("s0-gang-1-0", owned(), None, "failed", Excuses()) != ""


def test_a_wipe_may_lose_why_a_claim_ended_on_a_host_that_was_held_up() -> None:
    """The wipe deleted the only record that its lease, or that of another member of its gang, had expired."""
    wiped, others = frozenset({"forgotten"}), frozenset({"agent-2"})
    assert broken("s0-one-1", owned(), None, "void", Excuses(wiped, HELD_UP.held_up)) == ""
    assert broken("s0-one-1", owned(), None, "void", Excuses(wiped, others)) != ""
    assert broken("s0-gang-1-0", owned(), None, "void", Excuses(wiped, others)) == ""
    assert broken("s0-gang-1-0", owned(), None, "void", Excuses(wiped)) != ""
    assert broken("s0-one-1", owned(), None, "void", HELD_UP) != ""


@pytest.mark.parametrize(("other", "stands"), [("active", True), ("starting", False), ("claimed", False)])
def test_a_member_of_a_gang_was_active_only_if_all_of_the_gang_was(other: str, stands: bool) -> None:
    now = looked_at(
        cell(1_002_100, claim("active", "s0-gang-1-0"), claim(other, "s0-gang-1-1"), claim("active", "s0-one-2"))
    )
    owned_now = {claim_id: owned() for claim_id in ("s0-gang-1-0", "s0-one-2")}
    note_active(Mock(watcher=Mock(now=now.now), ledger=Mock(owned=owned_now)))
    assert {claim_id: one.was_active for claim_id, one in owned_now.items()} == {
        "s0-gang-1-0": stands,
        "s0-one-2": True,
    }


def test_faults_say_whose_agents_they_hold_up() -> None:
    """Faults that end an agent or affect its routes are listed, and none that affects only a scheduler."""
    world = Mock(site=Mock(loses_nothing=False, cells=("c1",)))
    both = ("agent-1", "scheduler-0")
    excuses = {
        one.shape.name: Excuses.of([one(world, Strike(one.shape.name, 0, 0, both if one.shape.on else ()))])
        for one in ALL
        if one.shape.on in ("any", "agent", "scheduler")
    }
    of_agents = {name for name, one in excuses.items() if one.held_up == {AGENT}}
    assert "hold-replies" in of_agents
    assert of_agents == excuses.keys() - {"kill-scheduler", "drain"}
    assert excuses["kill-attesting"].ends == {"forgotten"}


def test_every_agent_may_be_held_up_by_hold_replies_of_all() -> None:
    strike = Strike("hold-replies", 0, 0, children("any"))
    assert BY_NAME["hold-replies"](Mock(), strike).held_up() == set(children("agent"))


def looked_at(*views: View) -> Watcher:
    watcher = Watcher(lambda _: {}, [("c1",)])
    for view in views:
        watcher.take({"c1": view})
    return watcher


def cell(now_ms: int, *objects: tuple[str, str, list[str]]) -> View:
    seconds, rest = divmod(now_ms, 1000)
    raw = [
        ("time", "time", [str(seconds), str(rest * 1000)]),
        ("meta", "hash", ["epoch", "2-b", "settled", "1"]),
        *objects,
    ]
    return view_of("c1", [(f"rs:{{c1}}:{key}", kind, value) for key, kind, value in raw])


def claim(state: str, claim_id: str = "a", **fields: str) -> tuple[str, str, list[str]]:
    words = {"state": state, "host": HOST, "token": "2-b.7", **fields}
    return f"claim:{claim_id}", "hash", [word for pair in words.items() for word in pair]


def test_a_watcher_keeps_what_it_saw_of_a_claim_last_and_when_it_was_gone() -> None:
    there = cell(1_002_100, claim("starting", expires_at_ms="1002200"))
    ended = cell(1_002_300, claim("ended", end_reason="expired", kept="0"))
    forgotten = cell(1_300_000)
    watcher = looked_at(there, ended, forgotten)
    one = watcher.gone["a"]
    assert (one.end_reason, one.last["state"], one.seen_ms, one.gone_ms) == (
        "expired",
        "starting",
        1_002_100,
        1_002_300,
    )
    assert one.expires_ms == 1_002_200
    watcher.take({"c1": there})
    assert watcher.gone == {}, "a host has brought it back"


def test_a_wrong_line_says_what_was_promised_to_whom_and_what_is_there_instead() -> None:
    watcher = looked_at(
        cell(1_002_100, claim("starting", expires_at_ms="1002200")),
        cell(1_002_300, claim("ended", end_reason="expired", kept="0")),
    )
    ledger = Ledger()
    ledger.hear("s0", "placed", {"ids": ["a"], "hosts": [HOST], "tokens": ["2-b.7"], "expire_at_ms": [LEASE_ENDS]})
    ledger.owned["a"].answered_ms = ANSWERED
    result = Result(Round(1, "single", ()))
    count_lost(Mock(watcher=watcher, ledger=ledger, cell_of=lambda _: "c1"), result, Excuses())
    [line] = result.wrong
    for words in (
        "claim a was answered to s0 as claimed on agent-1-host-3 at ",
        ":40.000, to be accepted until ",
        ":45.000; it is lost: expired, seen starting on agent-1-host-3 last at ",
        ":42.100 with a lease until ",
        ":42.200, gone by ",
        ":42.300 (expired); no fault of the round held agent-1 up",
    ):
        assert words in line, line
    assert (ledger.owned, result.lost) == ({}, {"expired": 1})


@asynccontextmanager
async def at_work(server: PrivateServer, folder: Path) -> AsyncIterator[tuple[Scheduler, Proxy]]:
    """Yield a scheduler over a host with the suite's leases, and its agent's proxy, which strikes only `accept`."""
    settings = Settings.model_validate({**AGENT_SETTINGS, "resend_for_s": 30.0})
    accept = load_all()["accept"].sha.encode()
    async with Store.connect(server.url, settings) as store:
        await store.cell("c1").init()
    async with proxy(Path(server.socket), folder) as between:
        between.strikes = lambda command: command[1:2] == [accept]
        ready = asyncio.Event()
        hosts = hosts_of([HOST], settings.lease_s, "c1")
        agent = asyncio.create_task(run(settings, between.url, hosts, folder / "journal.sqlite", ready))
        try:
            await ready.wait()
            async with Scheduler.connect(server.url, Settings.model_validate(SCHEDULER_SETTINGS)) as scheduler:
                yield scheduler, between
        finally:
            await end(agent)


async def ops_of(scheduler: Scheduler, claim_id: str) -> list[str]:
    """Return what has happened to a claim, from the feed: polling the claim could miss a state that it soon leaves.

    An acceptance has no entry. But only what was accepted is `ending` when its lease is over: else it ends at once.
    """
    changes = await scheduler.cells.named("c1").store.feed.read("0-0", 1000)
    return [one.op for one in changes if one.fields.get("claim") == claim_id]


async def test_a_host_that_hears_no_reply_lets_its_own_lease_run_out_before_the_answered_one(
    fresh_server: PrivateServer, tmp_path: Path
) -> None:
    """Why `hold-replies` may expire claims: an accepted claim has its host's lease, 2 s in the fault suite."""
    async with at_work(fresh_server, tmp_path) as (scheduler, between):
        between.always = Fault.HOLD_REPLY
        asked = Request({"VCPU": 1}, claim_ids=("a",), lease_s=60)
        [answer] = (await scheduler.select(asked)).selections

        async def is_over() -> bool:
            return (await scheduler.claims.get("a")).end_reason is EndReason.EXPIRED

        await wait_until(is_over, timeout=30)
        ops = await ops_of(scheduler, "a")
    assert ops[:2] == ["claimed", "ending"]
    assert between.played[Fault.HOLD_REPLY]
    assert answer.expires_at_ms is not None
    assert time.time() * 1000 < answer.expires_at_ms, "that was the time to accept it in"


async def test_a_claim_that_was_unshelved_and_answered_as_claimed_is_shelved_again_where_its_host_hears_no_reply(
    fresh_server: PrivateServer, tmp_path: Path
) -> None:
    """Why an owner's claim may be shelved again after faults that delay an agent; the claim itself is not lost."""
    async with at_work(fresh_server, tmp_path) as (scheduler, between):
        asked = Request({"VCPU": 1}, claim_ids=("a",), until="active")
        [placed] = (await scheduler.select(asked)).selections
        await scheduler.claims.shelve("a", placed.token or "")
        between.always = Fault.HOLD_REPLY

        async def unshelved() -> bool:
            with suppress(Conflict):  # until its host has reported that the work has stopped
                return (await scheduler.claims.unshelve("a")).state is ClaimStatus.CLAIMED
            return False

        await wait_until(unshelved)

        async def is_shelved_again() -> bool:
            claim = await scheduler.claims.get("a")
            return claim.end_reason is EndReason.SHELVED and claim.state is ClaimStatus.ENDED

        await wait_until(is_shelved_again, timeout=30)
        ops = await ops_of(scheduler, "a")
    assert ops == ["claimed", "active", "ending", "shelved", "claimed", "ending", "expired"]
