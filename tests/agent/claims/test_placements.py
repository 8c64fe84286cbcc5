"""Placements of a claim on their hosts: two at once, what a wipe must not lose, and placements that have ended."""

import dataclasses
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis

from redsched.agent.claims.context import work_of
from redsched.agent.collectors.base import Named, Observation, Work
from redsched.agent.collectors.fleet import simulated
from redsched.agent.journal.journal import Journal, open_journal
from redsched.agent.journal.schema import JournalEntry
from redsched.agent.monitor import HostMonitor
from redsched.errors import StoreUnavailable
from redsched.model import Claim, ClaimStatus, HostReport, Inventory, Placement, Pool, Request
from redsched.store.codec.outcomes import Outcome
from redsched.store.commands.texts import TextCommands
from tests.agent.claims.test_steps import E1, Bench
from tests.agent.conftest import DIGEST, LEASE_S, REQUEST, World, held_work
from tests.support.waiting import wait_until

TWO_NODES = HostReport(
    "h1",
    {"DISK_GB": Inventory(100)},
    pools={"numa0": Pool({"VCPU": Inventory(4)}), "numa1": Pool({"VCPU": Inventory(4)})},
    lease_s=LEASE_S,
)
HERE, THERE = {"numa0/VCPU": 3}, {"numa1/VCPU": 3}
FIRST, SECOND = (report.name for report in simulated(2))


@asynccontextmanager
async def journal_of(world: World, name: str = "journal.sqlite") -> AsyncIterator[Journal]:
    """Yield the journal of an agent that has stopped."""
    journal = open_journal(world.folder / name)
    yield journal
    await journal.close()


async def moving_within_h1(world: World) -> tuple[str, str]:
    """Move a claim from node to node of one host; return the names of its two placements, both active."""
    first = (await world.place("a", HERE)).placed[0].token
    await world.reaches("a", ClaimStatus.ACTIVE)
    answer = await world.move("a", "h1", THERE)
    assert answer.outcome is Outcome.OK
    second = answer.placed[0].token
    await are(world, {first: "active", second: "active"})
    return first, second


async def are(world: World, states: dict[str, str]) -> None:
    """Wait until the claim `a` has these placements, in these states."""

    async def is_so() -> bool:
        return await world.placements("a") == states

    await wait_until(is_so, timeout=30, what=f"placements are {states}")


# -- two placements of one claim on one host


async def test_a_move_within_a_host_starts_the_new_placement_while_the_old_one_runs(world: World) -> None:
    await world.start([TWO_NODES], hook=world.hook)
    first, second = await moving_within_h1(world)
    assert world.calls() == [f"start a {first}", f"start a {second}"]
    host = await world.host()
    assert (host["claimed.numa0/VCPU"], host["claimed.numa1/VCPU"], host["claims"]) == ("3", "3", "2")
    await world.sweep()
    await are(world, {second: "active"})
    assert world.calls("stop") == [f"stop a {first}"]
    host = await world.host()
    assert (host.get("claimed.numa0/VCPU", "0"), host["claimed.numa1/VCPU"]) == ("0", "3")


async def test_a_move_within_a_host_that_is_called_off_stops_only_the_new_placement(world: World) -> None:
    await world.start([TWO_NODES], hook=world.hook)
    first = (await world.place("a", HERE)).placed[0].token
    await world.reaches("a", ClaimStatus.ACTIVE)
    world.on("start", "sleep 600")
    second = (await world.move("a", "h1", THERE)).placed[0].token
    await wait_until(lambda: f"start a {second}" in world.calls())
    assert (await world.cell.claims.release("h1", "a", token=second)).outcome is Outcome.ENDING
    await are(world, {first: "active"})
    await wait_until(lambda: world.calls("stop") == [f"stop a {second}"])


async def test_a_released_claim_is_stopped_at_both_places(world: World) -> None:
    await world.start([TWO_NODES], hook=world.hook)
    first, second = await moving_within_h1(world)
    await world.cell.claims.release("h1", "a")
    await world.reaches("a", ClaimStatus.ENDED)
    assert sorted(world.calls("stop")) == sorted([f"stop a {first}", f"stop a {second}"])


async def test_a_restarted_agent_has_both_in_its_journal_and_brings_both_back(world: World) -> None:
    agent = await world.start([TWO_NODES], hook=world.hook)
    first, second = await moving_within_h1(world)
    await world.stop(agent)
    async with journal_of(world) as journal:
        held = journal.pages["h1"].held
        assert {name: (work.id, work.amounts) for name, work in held.items()} == {
            first: ("a", HERE),
            second: ("a", THERE),
        }
        assert held[second].root == first
    world.flush()
    await world.start([TWO_NODES], hook=world.hook)
    await are(world, {first: "active", second: "active"})
    host = await world.host()
    assert (host["claimed.numa0/VCPU"], host["claimed.numa1/VCPU"], host["claims"]) == ("3", "3", "2")
    await world.sweep()
    await are(world, {second: "active"})
    assert world.calls() == [f"start a {first}", f"start a {second}", f"stop a {first}"]


async def test_the_double_check_counts_the_old_placement_beside_the_new_one(tmp_path: Path) -> None:
    """The store counts both too, since both run for a while."""
    bench = Bench(tmp_path)
    await bench.journal.write_held("h1", held_work("a", f"{E1}.7", {"VCPU": 5}, state=ClaimStatus.ACTIVE))
    await bench.steps.lifecycle.bring_up(held_work("a", f"{E1}.8", {"VCPU": 4}))
    assert bench.hook.calls == []
    await bench.steps.lifecycle.bring_up(held_work("a", f"{E1}.9", {"VCPU": 3}))
    assert bench.hook.calls == ["start"]
    await bench.journal.close()


class Meter:
    """Records the placements whose usage it is asked to tell apart."""

    name, cell, period_s = "h1", "c1", 600.0

    def __init__(self) -> None:
        self.works: Sequence[Work] = ()

    def look(self, works: Sequence[Work]) -> Observation:
        self.works = works
        return Observation(TWO_NODES)


async def test_usage_is_attributed_by_placement(tmp_path: Path) -> None:
    journal, meter = open_journal(tmp_path / "j.sqlite"), Meter()
    monitor = HostMonitor(meter, journal)
    old = held_work("a", f"{E1}.7", HERE, state=ClaimStatus.ENDING, named=Named(cgroup="old"))
    new = held_work("a", f"{E1}.8", THERE, state=ClaimStatus.ACTIVE, named=Named(cgroup="new"))
    for work in (old, new):
        journal.write_held("h1", work)
    await monitor.observe()
    assert [work.placed for work in meter.works] == [old.placed, new.placed]
    await monitor.observe(without=old.placed)
    assert [(work.claim_id, work.placed, work.named) for work in meter.works] == [("a", new.placed, new.named)]
    await journal.close()


async def test_of_a_claim_that_the_journal_knows_in_part_the_rest_may_still_run(tmp_path: Path) -> None:
    """A new journal has only one of two placements: the work of the other one is not foreign either."""
    journal, meter = open_journal(tmp_path / "j.sqlite"), Meter()
    monitor = HostMonitor(meter, journal, unknown={f"{E1}.7": "a", f"{E1}.8": "a"})
    journal.write_held("h1", held_work("a", f"{E1}.8", state=ClaimStatus.ACTIVE))
    await monitor.observe()
    assert {(work.claim_id, work.placed) for work in meter.works} == {("a", f"{E1}.7"), ("a", f"{E1}.8")}
    monitor.forget_unknown([Claim("a", "c1", "h1", ClaimStatus.ACTIVE, f"{E1}.8", {})])
    await monitor.observe()
    assert [work.placed for work in meter.works] == [f"{E1}.8"]
    await journal.close()


# -- moves between hosts


async def test_the_start_of_a_move_gets_its_source_and_a_wipe_loses_neither(world: World) -> None:
    world.on("start", f"cat > {world.folder}/told-$REDSCHED_TOKEN")
    await world.start(simulated(2), hook=world.hook)
    first = (await world.place("a", {"VCPU": 2}, host=FIRST)).placed[0].token
    await world.reaches("a", ClaimStatus.ACTIVE)
    second = (await world.move("a", SECOND, {"VCPU": 2})).placed[0].token
    await are(world, {first: "active", second: "active"})
    told = json.loads((world.folder / f"told-{second}").read_text())
    assert (told["claim_id"], told["placed"], told["moves"]) == ("a", second, {"host": FIRST, "token": first})
    assert "moves" not in json.loads((world.folder / f"told-{first}").read_text())

    world.flush()
    await are(world, {first: "active", second: "active"})
    claim = await world.claim("a")
    assert claim is not None
    assert {(one.host, one.root) for one in claim.placements} == {(FIRST, first), (SECOND, first)}

    async def is_moved() -> bool:
        await world.sweep()
        return await world.placements("a") == {second: "active"}

    await wait_until(is_moved, timeout=30)
    assert world.calls("stop") == [f"stop a {first}"]


async def test_a_start_that_a_crash_interrupted_gets_its_source_again(tmp_path: Path) -> None:
    work = held_work("a", f"{E1}.8", {"VCPU": 1}, moves={"host": "h9", "token": f"{E1}.7"})
    journal = open_journal(tmp_path / "j.sqlite")
    await journal.write_held("h1", work)
    await journal.close()
    journal = open_journal(tmp_path / "j.sqlite")
    assert journal.pages["h1"].held[work.placed].moves == {"host": "h9", "token": f"{E1}.7"}
    await journal.close()


@pytest.mark.parametrize(
    ("state", "moves"),
    [(ClaimStatus.ACTIVE, {"host": "h9", "token": f"{E1}.7"}), (ClaimStatus.ENDING, {}), (None, {})],
)
def test_only_what_is_placed_beside_a_running_placement_moves_it(
    state: ClaimStatus | None, moves: dict[str, str]
) -> None:
    """A retry after a failure is also based on a placement, but moves nothing."""
    target = Placement(f"{E1}.8", f"{E1}.8", f"{E1}.7", "h1", ClaimStatus.CLAIMED, {}, based_on=f"{E1}.7")
    source = Placement(f"{E1}.7", f"{E1}.7", f"{E1}.7", "h9", state or ClaimStatus.ACTIVE, {})
    placements = (source, target) if state else (target,)
    claim = Claim("a", "c1", "h1", ClaimStatus.CLAIMED, target.token, {}, placements=placements)
    assert work_of(claim, target).moves == moves


# -- a resize that only the journal or only the store has recorded


async def is_one_placement(world: World, placed: str, token: str, amounts: dict[str, int]) -> None:
    async def is_so() -> bool:
        claim = await world.claim("a")
        here = [(one.placed, one.token, dict(one.slots)) for one in claim.placements] if claim else []
        return here == [(placed, token, amounts)]

    await wait_until(is_so, timeout=30, what="it is one placement by the newer token")
    assert (await world.host())["claimed.VCPU"] == str(amounts["VCPU"])


async def test_a_resize_that_only_the_journal_has_seen_is_of_the_same_placement(world: World) -> None:
    """The store was rolled back to before the resize."""
    agent = await world.start(hook=world.hook)
    placed = (await world.place("a")).placed[0].token
    await world.reaches("a", ClaimStatus.ACTIVE)
    with redis.Redis.from_url(world.url, protocol=2) as client:
        earlier = {key: client.dump(key) for key in client.scan_iter()}
        token = (await world.cell.claims.resize("h1", "a", placed, {"VCPU": 3})).facts[0]
        await wait_until(lambda: world.calls("resize") == [f"resize a {token}"])
        await is_one_placement(world, placed, token, {"VCPU": 3})
        await world.stop(agent)
        client.flushall()
        for key, value in earlier.items():
            client.restore(key, 0, value)
    await world.cell.raise_epoch((await world.cell.tick()).epoch)
    await world.start(hook=world.hook)
    await is_one_placement(world, placed, token, {"VCPU": 3})
    assert world.calls() == [f"start a {placed}", f"resize a {token}"]


async def test_a_resize_that_only_the_store_has_seen_is_of_the_same_placement(world: World) -> None:
    """The journal was last written before the resize, and a new epoch begins."""
    agent = await world.start(hook=world.hook)
    placed = (await world.place("a")).placed[0].token
    await world.reaches("a", ClaimStatus.ACTIVE)
    await world.stop(agent)
    token = (await world.cell.claims.resize("h1", "a", placed, {"VCPU": 3})).facts[0]
    await world.cell.raise_epoch((await world.cell.tick()).epoch)
    agent = await world.start(hook=world.hook)
    await is_one_placement(world, placed, token, {"VCPU": 3})
    assert world.calls() == [f"start a {placed}", f"resize a {token}"]
    world.flush()
    await is_one_placement(world, placed, token, {"VCPU": 3})
    again = await world.cell.claims.resize("h1", "a", placed, {"VCPU": 3})
    assert (again.outcome, again.facts[0]) == (Outcome.ALREADY_DONE, token), (
        "a wipe does not lose what it was resized from"
    )
    await world.stop(agent)
    async with journal_of(world) as journal:
        assert [(one.placed, one.token) for one in journal.pages["h1"].held.values()] == [(placed, token)]


# -- placements that are gone


def at(work: JournalEntry, **changes: object) -> dict[str, Claim]:
    """Return the claim of this placement as the store has it."""
    one = Placement(work.placed, work.token, work.root, "h1", ClaimStatus.ACTIVE, work.amounts)
    one = dataclasses.replace(one, **changes)  # type: ignore[arg-type]
    raw = {"token": one.token, "placed": one.placed}
    return {work.id: Claim(work.id, "c1", one.host, one.state, one.token, one.slots, placements=(one,), raw=raw)}


async def test_stale_by_a_newer_token_continues_and_stale_for_good_is_stopped(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    work = await bench.hold(state=ClaimStatus.ACTIVE, is_running=True)
    bench.scripted.answers["renew"] = [(Outcome.STALE, E1), (Outcome.STALE, E1)]
    bench.scripted.stored = at(work, token=f"{E1}.9")
    await bench.steps.lifecycle.renew_missing(work)
    assert bench.hook.calls == []
    assert bench.held["a"].token == f"{E1}.9"
    # The claim has another placement here, which is no reason to keep the work of this one.
    bench.scripted.stored = at(work, placed=f"{E1}.10", token=f"{E1}.11")
    await bench.steps.lifecycle.renew_missing(bench.held["a"])
    assert bench.hook.calls == ["stop"]
    assert [one.placed for one in await bench.journal.ended("h1")] == [work.placed]
    await bench.journal.close()


async def test_a_start_that_fails_leaves_nothing_here_while_the_claim_waits_for_another_place(world: World) -> None:
    world.on("start", "exit 1")
    agent = await world.start(hook=world.hook)
    token = (await world.place("a", max_attempts=2)).placed[0].token
    await world.reaches("a", ClaimStatus.PENDING)
    assert world.calls() == [f"start a {token}", f"stop a {token}"]
    assert (await world.host())["claimed.VCPU"] == "0"
    await world.stop(agent)
    async with journal_of(world) as journal:
        assert journal.pages["h1"].held == {}
        assert [(one.id, one.placed) for one in await journal.ended("h1")] == [("a", token)]


# -- requests


async def is_kept(world: World, digest: str, text: str) -> None:
    async def is_so() -> bool:
        return await world.cell.texts.get(f"request:{digest}") == text

    await wait_until(is_so, timeout=30, what="the store has the request")


async def test_after_a_wipe_the_store_has_the_requests_of_its_claims_again(world: World) -> None:
    """Without its request a restored claim could not be moved, evacuated or placed again."""
    agent = await world.start(hook=world.hook)
    await world.place("a", request=REQUEST)
    await world.reaches("a", ClaimStatus.ACTIVE)
    world.flush()
    await world.reaches("a", ClaimStatus.ACTIVE)
    await is_kept(world, DIGEST, REQUEST)
    await world.stop(agent)
    world.flush()
    await world.start(hook=world.hook)
    await is_kept(world, DIGEST, REQUEST)


async def test_hooks_are_given_the_payload_of_the_request(world: World) -> None:
    """Also by an agent that started later, from its journal, when the store has lost the request."""
    for verb in ("start", "stop"):
        world.on(verb, f"cat > {world.folder}/$1.json")
    job = Request({"VCPU": 2}, payload={"argv": ["train.sh", "it's 5\u20ac"]})
    agent = await world.start(hook=world.hook)
    await world.place("a", request=job.canonical(), digest=job.digest())
    await world.reaches("a", ClaimStatus.ACTIVE)
    await world.stop(agent)
    world.flush()
    await world.start(hook=world.hook)
    await is_kept(world, job.digest(), job.canonical())
    await world.cell.claims.release("h1", "a")
    await world.reaches("a", ClaimStatus.ENDED)
    for verb in ("start", "stop"):
        assert json.loads((world.folder / f"{verb}.json").read_text())["payload"] == job.payload


async def test_without_a_payload_hooks_are_given_none(world: World) -> None:
    world.on("start", f"cat > {world.folder}/$1.json")
    await world.start(hook=world.hook)
    await world.place("a", request=REQUEST)
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert "payload" not in json.loads((world.folder / "start.json").read_text())


async def test_two_agents_that_put_the_same_request_back_at_once_leave_it_as_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_back: list[str] = []
    real = TextCommands.missing

    async def both_find_it_missing(texts: TextCommands, names: set[str]) -> list[str]:
        missing = await real(texts, names)
        put_back.extend(missing)
        if missing:
            await wait_until(lambda: len(put_back) >= 2, timeout=30)
        return missing

    for number, report in enumerate(simulated(2)):
        await world.start([report], journal=f"{number}.sqlite")
        await world.place(f"a{number}", {"VCPU": 1}, host=report.name, request=REQUEST)
        await world.reaches(f"a{number}", ClaimStatus.ACTIVE)
    monkeypatch.setattr(TextCommands, "missing", both_find_it_missing)
    world.flush()
    for number in range(2):
        await world.reaches(f"a{number}", ClaimStatus.ACTIVE)
    await wait_until(lambda: put_back == [f"request:{DIGEST}"] * 2, timeout=30)
    await is_kept(world, DIGEST, REQUEST)


async def test_a_request_that_the_store_could_not_take_is_put_back_with_a_later_heartbeat(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0
    real = TextCommands.restore

    async def fails_at_first(texts: TextCommands, name: str, text: str) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise StoreUnavailable("not now")
        await real(texts, name, text)

    await world.start()
    await world.place("a", request=REQUEST)
    await world.reaches("a", ClaimStatus.ACTIVE)
    monkeypatch.setattr("redsched.agent.agent.AGAIN_S", 0.05)
    monkeypatch.setattr(TextCommands, "restore", fails_at_first)
    world.flush()
    await is_kept(world, DIGEST, REQUEST)
    assert tries == 2


async def test_a_later_placement_that_has_ended_here_does_not_keep_an_older_one_from_being_accepted(
    world: World,
) -> None:
    """Nor does the agent conclude that the store has lost writes, and raise one epoch after the other."""
    agent = await world.start([TWO_NODES], hook=world.hook)
    await world.stop(agent)
    first = (await world.place("a", HERE)).placed[0].token
    before = (await world.cell.tick()).epoch
    async with journal_of(world) as journal:
        journal.write_ended("h1", held_work("a", f"{first}9", THERE))
    await world.start([TWO_NODES], hook=world.hook)
    await are(world, {first: "active"})
    assert (await world.cell.tick()).epoch == before
