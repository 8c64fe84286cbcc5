"""Resizing work in place: the input of the hook, what the store frees, and resuming after an interruption."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import redis

from redsched.agent.hooks.base import HookFailed
from redsched.agent.journal.schema import JournalEntry
from redsched.model import Claim, ClaimStatus, EndReason
from redsched.store.codec.outcomes import Outcome
from tests.agent.claims.test_steps import E1, WORK, Bench
from tests.agent.conftest import StartProcess, World, held_work
from tests.support.waiting import wait_until

SMALL, LARGE = {"VCPU": 1, "MEMORY_MB": 512}, {"VCPU": 4, "MEMORY_MB": 2048}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    yield made
    await made.journal.close()


async def active(world: World, claim_id: str = "a") -> str:
    """Place a claim, wait until its work runs, and return its token."""
    await world.place(claim_id)
    return (await world.reaches(claim_id, ClaimStatus.ACTIVE)).token


async def resize(world: World, token: str, amounts: Mapping[str, int]) -> str:
    answer = await world.cell.claims.resize("h1", "a", token, amounts)
    assert answer.outcome is Outcome.OK
    return answer.facts[0]


async def becomes(world: World, amounts: Mapping[str, int]) -> Claim:
    """Wait until the claim holds these amounts and no resize is under way."""
    found: Claim | None = None

    async def is_so() -> bool:
        nonlocal found
        found = await world.claim("a")
        return found is not None and dict(found.slots) == dict(amounts) and not found.resizing_to

    await wait_until(is_so, timeout=30, what=f"it holds {amounts}")
    assert found is not None
    return found


@pytest.mark.parametrize("amounts", [SMALL, LARGE])
async def test_the_hook_resizes_and_the_store_has_the_new_amounts(world: World, amounts: Mapping[str, int]) -> None:
    world.on("resize", f"cat > {world.folder}/told; echo pids: $$")
    await world.start(hook=world.hook)
    token = await resize(world, await active(world), amounts)
    claim = await becomes(world, amounts)
    assert (claim.state, claim.token) == (ClaimStatus.ACTIVE, token)
    assert world.calls("resize") == [f"resize a {token}"]
    told = json.loads((world.folder / "told").read_text())
    assert (told["slots"], told["former_slots"]) == (amounts, {"VCPU": 2, "MEMORY_MB": 1024})
    host = await world.host()
    assert {slot: int(host[f"claimed.{slot}"]) for slot in amounts} == amounts
    assert await world.cell.hosts.inbox("h1") == []
    await world.cell.claims.release("h1", "a")
    assert (await world.reaches("a", ClaimStatus.ENDED)).end_reason is EndReason.RELEASED
    assert world.calls("stop") == [f"stop a {token}"], "by the token of its last placing"


async def test_without_a_hook_it_is_done_at_once(world: World) -> None:
    await world.start()
    await resize(world, await active(world), LARGE)
    await becomes(world, LARGE)


async def test_a_hook_that_fails_gives_the_new_amounts_back(world: World) -> None:
    world.on("resize", "echo no such memory >&2; exit 1")
    await world.start(hook=world.hook)
    await resize(world, await active(world), LARGE)
    claim = await becomes(world, {"VCPU": 2, "MEMORY_MB": 1024})
    assert claim.state is ClaimStatus.ACTIVE
    assert (await world.host())["claimed.VCPU"] == "2"
    assert (await world.cell.feed.read("0-0", 1000))[-1].op == "resize-failed"
    assert world.calls("stop") == []


async def test_what_the_work_may_still_use_is_not_free_while_it_shrinks(world: World) -> None:
    world.on("resize", f"while [ ! -e {world.folder}/may-go-on ]; do sleep 0.02; done")
    await world.start(hook=world.hook)
    await resize(world, await active(world), SMALL)
    await wait_until(lambda: bool(world.calls("resize")))
    assert (await world.host())["claimed.VCPU"] == "2"
    (world.folder / "may-go-on").touch()
    await becomes(world, SMALL)


async def test_a_release_breaks_a_resize_off(world: World) -> None:
    world.on("resize", "sleep 600")
    await world.start(hook=world.hook, hook_timeout_s=300)
    await resize(world, await active(world), LARGE)
    await wait_until(lambda: bool(world.calls("resize")))
    await world.cell.claims.release("h1", "a")
    assert (await world.reaches("a", ClaimStatus.ENDED)).end_reason is EndReason.RELEASED
    assert (await world.host())["claimed.VCPU"] == "0"


async def test_work_that_cannot_be_stopped_after_a_resize_that_its_agent_missed_is_reported(world: World) -> None:
    """The journal has the token from before the resize, and the store takes no other than the newest."""
    world.on("stop", "echo target is busy >&2; exit 1")
    agent = await world.start(hook=world.hook)
    token = await active(world)
    await world.stop(agent)
    await resize(world, token, LARGE)
    with redis.Redis.from_url(world.url, protocol=2) as client:
        assert client.delete("rs:{c1}:inbox:h1") == 1
    await world.cell.claims.release("h1", "a")
    await world.start(hook=world.hook)

    async def is_told() -> bool:
        failure = await world.stop_failure("a")
        return failure is not None and failure.token != token and "target is busy" in failure.text

    await wait_until(is_told)
    world.on("stop", "exit 0")
    await world.reaches("a", ClaimStatus.ENDED)


async def test_a_claim_that_is_resized_while_it_starts_is_started_once_and_then_resized(world: World) -> None:
    """Cancelling the start and running another one could leave the work running twice."""
    world.on("start", f"while [ ! -e {world.folder}/may-start ]; do sleep 0.02; done")
    await world.start(hook=world.hook)
    first = (await world.place("a")).placed[0].token
    await wait_until(lambda: bool(world.calls("start")))
    token = await resize(world, first, LARGE)
    renewed = (await world.reaches("a", ClaimStatus.STARTING)).expires_at_ms

    async def is_renewed_by_the_new_token() -> bool:
        claim = await world.claim("a")
        assert claim is not None
        return claim.expires_at_ms != renewed

    await wait_until(is_renewed_by_the_new_token)
    (world.folder / "may-start").touch()
    await becomes(world, LARGE)
    assert world.calls() == [f"start a {first}", f"resize a {token}"]


async def test_a_claim_that_was_resized_before_it_was_accepted_is_just_started(world: World) -> None:
    agent = await world.start(hook=world.hook)
    await world.stop(agent)
    token = await resize(world, (await world.place("a")).placed[0].token, LARGE)
    await world.start(hook=world.hook)
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert world.calls() == [f"start a {token}"]


async def test_a_lost_notification_to_resize_is_found_by_comparing(world: World) -> None:
    agent = await world.start(hook=world.hook)
    token = await active(world)
    await world.stop(agent)
    await resize(world, token, LARGE)
    with redis.Redis.from_url(world.url, protocol=2) as client:
        assert client.delete("rs:{c1}:inbox:h1") == 1
    await world.start(hook=world.hook)
    await becomes(world, LARGE)


async def test_a_resize_that_a_crash_interrupted_continues(world: World, start_process: StartProcess) -> None:
    world.on("resize", "sleep 60")
    agent = await start_process(world)
    token = await resize(world, await active(world), LARGE)
    await wait_until(lambda: bool(world.calls("resize")))
    agent.kill()
    world.on("resize", "exit 0")
    await start_process(world)
    await becomes(world, LARGE)
    assert world.calls("resize") == [f"resize a {token}"] * 2, "the same id and token: hooks are idempotent by them"
    assert len(world.calls("start")) == 1


async def test_a_resize_that_a_wipe_interrupted_continues(world: World) -> None:
    world.on("resize", f"while [ ! -e {world.folder}/may-go-on ]; do sleep 0.02; done")
    await world.start(hook=world.hook)
    await resize(world, await active(world), SMALL)
    await wait_until(lambda: bool(world.calls("resize")))
    world.flush()
    claim = await world.reaches("a", ClaimStatus.ACTIVE)
    assert (dict(claim.slots), claim.resizing_to) == ({"VCPU": 2, "MEMORY_MB": 1024}, SMALL)
    (world.folder / "may-go-on").touch()
    await becomes(world, SMALL)
    assert world.calls("stop") == []


async def test_two_resizes_end_with_the_second(world: World) -> None:
    world.on("resize", f"while [ ! -e {world.folder}/may-go-on ]; do sleep 0.02; done")
    await world.start(hook=world.hook)
    first = await resize(world, await active(world), LARGE)
    await wait_until(lambda: bool(world.calls("resize")))
    second = await resize(world, first, SMALL)
    (world.folder / "may-go-on").touch()
    assert (await becomes(world, SMALL)).token == second
    assert world.calls("resize") == [f"resize a {first}", f"resize a {second}"]


# -- against a store whose replies the test chooses

RESIZED = held_work("a", f"{E1}.9", {"VCPU": 4}, resizing_to={"VCPU": 4}, placed=WORK.placed)


async def resizing(bench: Bench, **changes: object) -> JournalEntry:
    return await bench.hold(state=ClaimStatus.ACTIVE, is_running=True, **changes)


async def test_the_journal_knows_of_it_before_the_hook_and_of_the_hooks_word_before_the_store(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await resizing(bench)
    seen: list[object] = []
    transaction = bench.journal._transaction

    def noted(statements: list[tuple[str, tuple[object, ...]]]) -> None:
        transaction(statements)
        held = bench.held["a"]
        seen.append(
            (held.token[-1], dict(held.resizing_to), dict(held.before), [*bench.hook.calls], bench.scripted.asked[1:])
        )

    monkeypatch.setattr(bench.journal, "_transaction", noted)
    await bench.steps.lifecycle.bring_up(RESIZED)
    assert seen[0] == ("9", {"VCPU": 4}, {"VCPU": 2}, [], [])
    assert ("9", {"VCPU": 4}, {"VCPU": 4}, ["resize"], ["confirm"]) in seen
    assert bench.scripted.asked == ["accept", "confirm", "resized"]
    held = bench.held["a"]
    assert (held.token, held.placed, held.amounts, held.resizing_to) == (RESIZED.token, WORK.placed, {"VCPU": 4}, {})


async def test_a_hook_that_has_said_its_word_is_not_asked_again(bench: Bench) -> None:
    """The agent's process ended before it got the store's reply to `resized`."""
    work = await resizing(bench, token=RESIZED.token, record=RESIZED.record, before={"VCPU": 4})
    await bench.steps.lifecycle.bring_up(work)
    assert bench.hook.calls == []
    assert bench.scripted.asked == ["accept", "confirm", "resized"]


async def test_what_the_journal_has_done_and_the_store_forgotten_is_reported_again(bench: Bench) -> None:
    await resizing(bench, token=RESIZED.token, record=held_work("a", "", {"VCPU": 4}).record)
    await bench.steps.lifecycle.bring_up(RESIZED)
    assert (bench.hook.calls, bench.scripted.asked[-1]) == ([], "resized")


async def test_a_resize_that_the_host_cannot_hold_is_not_tried(bench: Bench) -> None:
    await resizing(bench)
    await bench.steps.lifecycle.bring_up(RESIZED.with_amounts({"VCPU": 9}, {"VCPU": 9}, {}))
    assert bench.hook.calls == []
    assert bench.held["a"].amounts == {"VCPU": 2}


@pytest.mark.parametrize(
    ("outcome", "asked"),
    [(Outcome.ENDING, ["resized", "gone"]), (Outcome.ENDED, ["resized"]), (Outcome.UNKNOWN, ["resized"])],
)
async def test_a_claim_that_ends_meanwhile_is_stopped(bench: Bench, outcome: Outcome, asked: list[str]) -> None:
    await resizing(bench)
    bench.scripted.answers["resized"] = [(outcome, E1)]
    await bench.steps.lifecycle.bring_up(RESIZED)
    assert bench.scripted.asked[2:] == asked
    assert bench.hook.calls == ["resize", "stop"]
    assert bench.held == {}


async def test_of_a_failed_resize_the_old_amounts_are_reported(bench: Bench) -> None:
    await resizing(bench)
    bench.hook.fails = {"resize": [HookFailed("no")]}
    await bench.steps.lifecycle.bring_up(RESIZED)
    assert bench.scripted.asked[-1] == "resized"
    assert bench.held["a"].amounts == WORK.amounts
