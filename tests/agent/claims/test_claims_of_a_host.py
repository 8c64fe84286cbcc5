"""A claim on its host, against real servers: from the inbox through the hook to its end."""

import asyncio
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace

import pytest
import redis

from redsched.agent.claims import lifecycle
from redsched.agent.hooks.command import CommandHook
from redsched.agent.host_session import BEATS_IN_LEASE
from redsched.agent.journal.journal import Journal
from redsched.model import ClaimStatus, EndReason
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode, ScriptResult
from redsched.store.commands.claims import ClaimCommands
from tests.agent.conftest import LEASE_S, TWO, World
from tests.support.waiting import wait_until


def client(world: World) -> redis.Redis:
    return redis.Redis.from_url(world.url, protocol=2, decode_responses=True)


async def test_a_claim_reaches_the_hook_and_is_confirmed(world: World) -> None:
    await world.start(hook=world.hook)
    answer = await world.place("a")
    claim = await world.reaches("a", ClaimStatus.ACTIVE)
    assert claim.expires_at_ms is None
    assert world.calls() == [f"start a {answer.placed[0].token}"]
    assert await world.cell.hosts.inbox("h1") == []


async def test_without_a_hook_a_claim_is_confirmed_at_once(world: World) -> None:
    await world.start()
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)


async def test_a_claim_made_before_the_agent_started_is_accepted(world: World) -> None:
    agent = await world.start(hook=world.hook)
    await world.stop(agent)
    await world.place("a")
    await world.start(hook=world.hook)
    await world.reaches("a", ClaimStatus.ACTIVE)


async def test_a_hook_that_fails_frees_the_resources(world: World) -> None:
    world.on("start", "echo no disk >&2; exit 1")
    await world.start(hook=world.hook)
    await world.place("a")
    claim = await world.reaches("a", ClaimStatus.ENDED)
    assert claim.end_reason is EndReason.FAILED
    assert (await world.host())["claimed.VCPU"] == "0"
    assert [call.split()[0] for call in world.calls()] == ["start", "stop"], "what it half started is cleaned up"
    reason = await world.reason("a")
    assert reason is not None
    assert reason.text.endswith("start for a ended with exit code 1\nno disk")


async def test_what_could_not_be_started_is_not_freed_before_it_is_stopped(world: World) -> None:
    """The failed start may have begun some work, so its amounts must not go to another claim yet."""
    world.on("start", "exit 1")
    world.on("stop", "exit 1")
    await world.start(hook=world.hook)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ENDING)
    await wait_until(lambda: len(world.calls("stop")) >= 2)
    assert (await world.host())["claimed.VCPU"] == "2"
    world.on("stop", "exit 0")
    assert (await world.reaches("a", ClaimStatus.ENDED)).end_reason is EndReason.FAILED
    assert await world.reason("a"), "said with the failure, kept over the end"
    assert (await world.host())["claimed.VCPU"] == "0"
    assert len(world.calls("start")) == 1


async def test_a_hook_that_is_removed_frees_the_resources(world: World) -> None:
    await world.start(hook=world.hook)
    (world.folder / "hook.sh").unlink()
    await world.place("a")
    assert (await world.reaches("a", ClaimStatus.ENDED)).end_reason is EndReason.FAILED


async def test_a_released_claim_is_stopped_before_it_is_freed(world: World) -> None:
    world.on("stop", f"while [ ! -e {world.folder}/may-stop ]; do sleep 0.02; done")
    await world.start(hook=world.hook)
    token = (await world.place("a")).placed[0].token
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert (await world.cell.claims.release("h1", "a")).outcome is Outcome.ENDING
    await wait_until(lambda: world.calls("stop") == [f"stop a {token}"])
    assert (await world.host())["claimed.VCPU"] == "2", "its work is still there"
    (world.folder / "may-stop").touch()
    assert (await world.reaches("a", ClaimStatus.ENDED)).end_reason is EndReason.RELEASED
    assert (await world.host())["claimed.VCPU"] == "0"
    assert await world.cell.hosts.inbox("h1") == []


async def test_a_stop_that_fails_is_tried_until_it_succeeds(world: World) -> None:
    """The claim has the reason, and gets another one when it changes."""
    world.on("stop", "echo target is busy >&2; exit 1")
    await world.start(hook=world.hook)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    await world.cell.claims.release("h1", "a")
    await wait_until(lambda: len(world.calls("stop")) >= 2)
    claim = await world.claim("a")
    assert claim is not None
    assert claim.state is ClaimStatus.ENDING

    async def is_told(said: str) -> bool:
        failure = await world.stop_failure("a")
        return failure is not None and said in failure.text

    for said in ("target is busy", "still busy"):
        world.on("stop", f"echo {said} >&2; exit 1")
        await wait_until(partial(is_told, said), what=said)
    world.on("stop", "exit 0")
    await world.reaches("a", ClaimStatus.ENDED)


async def test_the_lease_is_renewed_while_the_hook_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Again and again, long before it runs out."""
    monkeypatch.setattr(lifecycle, "BEATS_IN_LEASE", 300)
    world.on("start", f"while [ ! -e {world.folder}/may-start ]; do sleep 0.02; done")
    await world.start(hook=world.hook)
    await world.place("a")
    ends: set[int] = set()

    async def has_been_renewed() -> bool:
        claim = await world.reaches("a", ClaimStatus.STARTING)
        ends.add(claim.expires_at_ms or 0)
        return len(ends) > 3

    await wait_until(has_been_renewed, timeout=30)
    assert min(ends) > 0
    (world.folder / "may-start").touch()
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert len(world.calls("start")) == 1


async def test_a_lease_is_renewed_at_least_twice_before_it_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the usual rate, which other tests here raise."""
    pauses = list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0.01)

    monkeypatch.setattr(lifecycle, "BEATS_IN_LEASE", BEATS_IN_LEASE)
    monkeypatch.setattr(lifecycle, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    world.on("start", f"while [ ! -e {world.folder}/may-start ]; do sleep 0.02; done")
    await world.start(hook=world.hook)
    await world.place("a")
    await wait_until(lambda: len(pauses) > 3)
    (world.folder / "may-start").touch()
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert 0 < max(pauses) <= LEASE_S / 2


async def begin_a_start_that_never_ends(world: World) -> None:
    """Place claim a, and wait until its start hook is running."""
    world.on("start", "sleep 600")
    await world.start(hook=world.hook, hook_timeout_s=300)
    await world.place("a")
    await world.reaches("a", ClaimStatus.STARTING)
    await wait_until(lambda: bool(world.calls("start")))


async def test_a_claim_released_while_it_starts_is_stopped_at_once(world: World) -> None:
    await begin_a_start_that_never_ends(world)
    await world.cell.claims.release("h1", "a")
    assert (await world.reaches("a", ClaimStatus.ENDED)).end_reason is EndReason.RELEASED
    assert len(world.calls("stop")) == 1


async def test_work_is_stopped_when_the_store_ended_its_claim_while_it_was_starting(world: World) -> None:
    await begin_a_start_that_never_ends(world)
    assert (await world.cell.claims.release("h1", "a", how=ReleaseMode.FORCE)).outcome is Outcome.OK
    await wait_until(lambda: len(world.calls("stop")) == 1, what="the renewal hears of it, and the work is stopped")


async def test_a_host_fails_what_it_cannot_hold(world: World) -> None:
    await world.start(hook=world.hook)
    with client(world) as redis_client:
        redis_client.hset("rs:{c1}:host:h1", mapping={"capacity.VCPU": "100", "max.VCPU": "100"})
    await world.place("small")
    await world.reaches("small", ClaimStatus.ACTIVE)
    assert (await world.place("large", {"VCPU": 7})).outcome is Outcome.OK
    assert (await world.reaches("large", ClaimStatus.ENDED)).end_reason is EndReason.FAILED
    assert [call.split()[1] for call in world.calls()] == ["small"]
    reason = await world.reason("large")
    assert reason is not None
    assert reason.text.startswith("the host cannot hold it: it needs 7 VCPU: of 8 its other claims hold 2")


async def test_a_host_waits_for_room_that_the_store_has_given_away_before_it_knew(world: World) -> None:
    """The store has freed a claim by force while its work is being stopped, and has placed another one there."""
    world.on("stop", f"while [ ! -e {world.folder}/may-stop ]; do sleep 0.02; done")
    await world.start(hook=world.hook, lease_s=20)
    await world.place("a", {"VCPU": 8})
    await world.reaches("a", ClaimStatus.ACTIVE)
    await world.cell.claims.release("h1", "a")
    await wait_until(lambda: bool(world.calls("stop")))
    assert (await world.cell.claims.release("h1", "a", how=ReleaseMode.FORCE)).outcome is Outcome.OK
    assert (await world.place("b", {"VCPU": 8})).outcome is Outcome.OK
    await world.reaches("b", ClaimStatus.STARTING)
    (world.folder / "may-stop").touch()
    await world.reaches("b", ClaimStatus.ACTIVE)
    assert [call.split()[:2] for call in world.calls()] == [["start", "a"], ["stop", "a"], ["start", "b"]]


async def test_a_lost_notification_to_start_is_found_by_comparing(world: World) -> None:
    agent = await world.start(hook=world.hook)
    await world.stop(agent)
    await world.place("a")
    with client(world) as redis_client:
        assert redis_client.delete("rs:{c1}:inbox:h1") == 1
    await world.start(hook=world.hook)
    await world.reaches("a", ClaimStatus.ACTIVE)


async def test_a_lost_notification_to_end_is_found_by_comparing(world: World) -> None:
    agent = await world.start(hook=world.hook)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    await world.stop(agent)
    await world.cell.claims.release("h1", "a")
    with client(world) as redis_client:
        assert redis_client.delete("rs:{c1}:inbox:h1") == 1
    await world.start(hook=world.hook)
    await world.reaches("a", ClaimStatus.ENDED)
    assert len(world.calls("stop")) == 1


async def test_work_whose_claim_ended_while_the_agent_was_away_is_stopped(world: World) -> None:
    agent = await world.start(hook=world.hook)
    token = (await world.place("a")).placed[0].token
    await world.reaches("a", ClaimStatus.ACTIVE)
    await world.stop(agent)
    await world.cell.claims.release("h1", "a", how=ReleaseMode.FORCE)
    await world.start(hook=world.hook)
    await wait_until(lambda: world.calls("stop") == [f"stop a {token}"])


async def test_the_journal_comes_first_then_the_store_then_the_hook(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is interrupted, the journal has a record of it."""
    events: list[str] = []
    commit, accept, run = Journal._transaction, ClaimCommands.accept, CommandHook.run

    def noted_commit(self: Journal, statements: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        commit(self, list(statements))
        events.extend("durable" for _, values in statements if "a" in values)

    async def noted_accept(self: ClaimCommands, *arguments: object) -> ScriptResult:
        events.append("accept")
        return await accept(self, *arguments)  # type: ignore[arg-type]

    async def noted_run(self: CommandHook, order: object) -> bytes:
        events.append("hook")
        return await run(self, order)  # type: ignore[arg-type]

    monkeypatch.setattr(Journal, "_transaction", noted_commit)
    monkeypatch.setattr(ClaimCommands, "accept", noted_accept)
    monkeypatch.setattr(CommandHook, "run", noted_run)
    await world.start(hook=world.hook)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert [event for number, event in enumerate(events) if event not in events[:number]] == [
        "durable",
        "accept",
        "hook",
    ]


async def test_amounts_that_end_return_with_the_new_external_usage(world: World) -> None:
    await world.start(hook=world.hook)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert (await world.host())["claimed.MEMORY_MB"] == str(TWO["MEMORY_MB"])
    await world.cell.claims.release("h1", "a")
    await world.reaches("a", ClaimStatus.ENDED)
    host = await world.host()
    assert (host["claimed.MEMORY_MB"], host.get("external.MEMORY_MB", "0")) == ("0", "0")
