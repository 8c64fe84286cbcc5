"""Agents that die and stores that lose data: hosts restore their claims, and claims that have ended stay ended."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from redsched.agent.claims.context import LifecycleContext
from redsched.agent.journal.journal import Journal, open_journal
from redsched.agent.journal.schema import JournalEntry
from redsched.errors import OtherAgent
from redsched.model import Amounts, ClaimStatus, EndReason, HostStatus
from redsched.settings import Settings
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import AttestReply
from redsched.store.commands.claims import ClaimCommands
from redsched.store.commands.hosts import HostCommands
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.agent.conftest import StartProcess, World
from tests.support.waiting import patience_s, wait_until


async def test_a_killed_agents_host_gets_no_claims_and_comes_back_with_its_own(
    world: World, start_process: StartProcess
) -> None:
    agent = await start_process(world)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    agent.kill()
    await world.lapse()
    answer = await world.place("b", outcome=Outcome.FULL)
    assert answer.looked_at[0].cause == "DOWN"
    await start_process(world)
    await world.place("b")
    await world.reaches("b", ClaimStatus.ACTIVE)
    claim = await world.claim("a")
    assert claim is not None
    assert claim.state is ClaimStatus.ACTIVE
    assert [call.split()[1] for call in world.calls()] == ["a", "b"], "work that runs is not started again"


async def test_a_start_that_a_crash_interrupted_is_asked_for_again(world: World, start_process: StartProcess) -> None:
    world.on("start", "sleep 60")
    agent = await start_process(world)
    token = (await world.place("a", lease_s=60)).placed[0].token
    await wait_until(lambda: bool(world.calls("start")))
    agent.kill()
    world.on("start", "exit 0")
    await start_process(world)
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert world.calls() == [f"start a {token}"] * 2, "the same id and token, and no stop in between"


async def test_an_end_that_a_crash_interrupted_is_finished(world: World, start_process: StartProcess) -> None:
    world.on("stop", "sleep 60")
    agent = await start_process(world)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    await world.cell.claims.release("h1", "a")
    await wait_until(lambda: bool(world.calls("stop")))
    agent.kill()
    world.on("stop", "exit 0")
    await start_process(world)
    await world.reaches("a", ClaimStatus.ENDED)


async def test_after_a_flush_hosts_come_back_with_their_claims(world: World) -> None:
    await world.start(hook=world.hook)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    before = await world.cell.tick()
    world.flush()
    claim = await world.reaches("a", ClaimStatus.ACTIVE)
    assert dict(claim.slots) == {"VCPU": 2, "MEMORY_MB": 1024}
    host = await world.host()
    assert (host["claimed.VCPU"], host["epoch"]) == ("2", (await world.cell.tick()).epoch)
    assert host["epoch"] != before.epoch
    await world.place("b")
    await world.reaches("b", ClaimStatus.ACTIVE)
    assert world.calls("stop") == []
    assert len(world.calls("start")) == 2


async def test_after_a_flush_a_claim_still_says_where_its_log_is(world: World) -> None:
    """It keeps that when it has ended. The host knows it from its journal."""
    world.on("start", "echo log: /jobs/a/log")
    await world.start(hook=world.hook)
    await world.place("a")
    assert (await world.reaches("a", ClaimStatus.ACTIVE)).log == "h1:/jobs/a/log"
    before = (await world.cell.tick()).epoch
    world.flush()
    claim = await world.reaches("a", ClaimStatus.ACTIVE)
    assert ((await world.cell.tick()).epoch != before, claim.log) == (True, "h1:/jobs/a/log")
    await world.cell.claims.release("h1", "a")
    assert (await world.reaches("a", ClaimStatus.ENDED)).log == "h1:/jobs/a/log"


async def test_after_a_flush_the_owner_still_sees_why_a_claim_ends(world: World) -> None:
    """The host was asked to stop the work, and got the reason, before the store lost everything."""
    world.on("stop", f"while [ ! -e {world.folder}/may-stop ]; do sleep 0.02; done")
    await world.start(hook=world.hook)
    token = (await world.place("a")).placed[0].token
    await world.reaches("a", ClaimStatus.ACTIVE)
    await world.cell.claims.fail("h1", "a", token, by_host=False, retry=False)
    await wait_until(lambda: bool(world.calls("stop")))
    world.flush()
    claim = await world.reaches("a", ClaimStatus.ENDING)
    assert claim.end_reason is EndReason.FAILED
    (world.folder / "may-stop").touch()
    assert (await world.reaches("a", ClaimStatus.ENDED)).end_reason is EndReason.FAILED


async def test_a_flush_while_work_starts_loses_nothing(world: World) -> None:
    world.on("start", f"while [ ! -e {world.folder}/may-start ]; do sleep 0.02; done")
    await world.start(hook=world.hook)
    await world.place("a")
    await wait_until(lambda: bool(world.calls("start")))
    world.flush()
    await world.reaches("a", ClaimStatus.STARTING)
    (world.folder / "may-start").touch()
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert len(world.calls()) == 1


async def test_a_store_that_went_back_does_not_bring_back_what_ended(world: World) -> None:
    """The store offers a claim that the host knows to have ended: the host raises the epoch, and attests to the end."""
    await world.start(hook=world.hook)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    with redis.Redis.from_url(world.url, protocol=2) as client:
        earlier = {key: client.dump(key) for key in client.scan_iter()}
        await world.cell.claims.release("h1", "a")
        await world.reaches("a", ClaimStatus.ENDED)
        before = await world.cell.tick()
        put_back(client, earlier)

    async def is_over() -> bool:
        claim = await world.claim("a")
        return claim is not None and claim.state is ClaimStatus.ENDED and (await world.cell.tick()).epoch > before.epoch

    await wait_until(is_over, timeout=30)
    assert len(world.calls("start")) == 1


async def test_a_version_that_went_back_starts_a_new_epoch(world: World) -> None:
    await world.start(report_s=0.1)
    before = await world.cell.tick()
    with redis.Redis.from_url(world.url, protocol=2) as client:
        earlier = {key: client.dump(key) for key in client.scan_iter()}
        for status in (HostStatus.DISABLED, HostStatus.ENABLED):
            await world.cell.hosts.set_status("h1", status)
        number = int((await world.host())["agent.number"])

        async def has_reported_since() -> bool:
            return int((await world.host())["agent.number"]) > number

        await wait_until(has_reported_since)
        put_back(client, earlier)

    async def is_open_in_another() -> bool:
        host = await world.host()
        return host["epoch"] != before.epoch and host["epoch"] == (await world.cell.tick()).epoch

    await wait_until(is_open_in_another)


def put_back(client: "redis.Redis", earlier: dict[bytes, bytes]) -> None:
    """Replace the data as a failover to a lagging replica, or a restored backup, does."""
    pipe = client.pipeline()
    pipe.flushall()
    for key, value in earlier.items():
        pipe.restore(key, 0, value)
    pipe.execute()


async def test_the_old_epoch_is_left_durably_before_anything_is_sent_in_the_new_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    commit, attest = Journal._transaction, HostCommands.attest
    first = (await world.cell.tick()).epoch

    def noted_commit(self: Journal, statements: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        commit(self, list(statements))
        events.extend("left" for _, values in statements if values[:2] == ("h1", first))

    async def noted_attest(self: HostCommands, host: str, epoch: str, *arguments: object) -> AttestReply:
        events.append(f"attest {'first' if epoch == first else 'second'}")
        return await attest(self, host, epoch, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Journal, "_transaction", noted_commit)
    monkeypatch.setattr(HostCommands, "attest", noted_attest)
    await world.start()
    await world.cell.raise_epoch(first)
    await wait_until(lambda: "attest second" in events)
    assert events[:3] == ["attest first", "left", "attest second"]


async def test_an_agent_waits_for_a_store_that_is_away(fresh_server: PrivateServer, tmp_path: Path) -> None:
    async with Store.connect(fresh_server.url, Settings(resend_for_s=0.2)) as store:
        await store.cell("c1").init()
        world = World(fresh_server.url, store.cell("c1"), tmp_path)
        agent = await world.start(hook=world.hook, resend_for_s=0.2)
        await world.place("a")
        await world.reaches("a", ClaimStatus.ACTIVE)
        await asyncio.to_thread(fresh_server.kill)
        await asyncio.to_thread(fresh_server.restart)
        await world.reaches("a", ClaimStatus.ACTIVE)
        assert not agent.done()
        assert world.calls("stop") == []
        await world.close()


async def test_of_two_agents_with_one_journal_one_stops(world: World) -> None:
    await world.stop(await world.start())
    shutil.copy(world.folder / "journal.sqlite", world.folder / "copy.sqlite")
    first = await world.start()
    second = asyncio.create_task(world.start(journal="copy.sqlite"))
    both = [first, second]
    done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION, timeout=patience_s(30))
    ended = [task for task in done if task.exception() is not None]
    assert len(ended) == 1
    with pytest.raises(OtherAgent, match="another agent speaks for host h1"):
        ended[0].result()
    if ended != [first]:
        await world.place("a")
        await world.reaches("a", ClaimStatus.ACTIVE)


async def test_a_restarted_agent_whose_report_a_failover_lost_continues(world: World) -> None:
    """The store again has the record of the previous process, which has ended; the new process reports once more."""
    await world.stop(await world.start(hook=world.hook))
    former = {field: value for field, value in (await world.host()).items() if field in ("agent.nonce", "agent.number")}
    agent = await world.start(hook=world.hook)
    with redis.Redis.from_url(world.url, protocol=2) as client:
        client.hset("rs:{c1}:host:h1", mapping=former)

    async def has_reported() -> bool:
        return (await world.host())["agent.nonce"] != former["agent.nonce"] or agent.done()

    await wait_until(has_reported)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert not agent.done()


async def test_an_agent_without_the_journal_waits_for_nobody_and_stops(world: World) -> None:
    await world.start()
    with pytest.raises(OtherAgent):
        await world.start(journal="other.sqlite")


async def test_an_agent_that_lost_its_journal_takes_over_when_the_lease_has_run_out(world: World) -> None:
    await world.stop(await world.start(hook=world.hook))
    await world.place("a")
    await world.lapse()
    await world.start(hook=world.hook, journal="new.sqlite")
    await world.reaches("a", ClaimStatus.ACTIVE)


async def test_a_host_that_was_written_off_attests_again(world: World) -> None:
    await world.start(hook=world.hook)
    await world.cell.hosts.write_off("h1", force=True)
    await is_open(world)


async def is_open(world: World) -> None:
    """Wait until the host has attested to the current epoch."""

    async def has_attested() -> bool:
        return (await world.host()).get("epoch") == (await world.cell.tick()).epoch

    await wait_until(has_attested, what="the host is open")


async def test_an_idle_host_that_was_forgotten_reports_again(world: World) -> None:
    await world.start(compare_s=600)
    assert (await world.cell.hosts.forget("h1", force=True)).outcome is Outcome.OK
    await is_open(world)


async def test_a_host_that_was_forgotten_reports_again(world: World) -> None:
    await world.start(hook=world.hook)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert (await world.cell.hosts.forget("h1", force=True)).outcome is Outcome.OK

    await is_open(world)
    await world.place("b")
    await world.reaches("b", ClaimStatus.ACTIVE)
    # Again if the host attests before its first call has ended: a hook stops what does not run any more.
    await wait_until(lambda: {call.split()[1] for call in world.calls("stop")} == {"a"})


@pytest.mark.parametrize("with_hook", [True, False])
async def test_the_journal_says_active_before_the_store_does(
    world: World, monkeypatch: pytest.MonkeyPatch, with_hook: bool
) -> None:
    """Otherwise a wiped store would restore the claim with a lease, which expires if the agent is away for long."""
    asked = asyncio.Event()

    async def never_answered(*_: object, **__: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(ClaimCommands, "confirm", never_answered)
    task = await world.start(hook=world.hook if with_hook else "")
    await world.place("a")
    async with asyncio.timeout(patience_s(30)):
        await asked.wait()
    await world.stop(task)
    journal = open_journal(world.folder / "journal.sqlite")
    assert [(work.id, work.state) for work in journal.pages["h1"].held.values()] == [("a", ClaimStatus.ACTIVE)]
    await journal.close()


async def test_an_id_that_came_back_is_attested_by_its_later_placing(world: World) -> None:
    """The tombstone of an earlier placement must not end the one that runs now."""
    task = await world.start(hook=world.hook)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    await world.cell.claims.release("h1", "a")
    await world.reaches("a", ClaimStatus.ENDED)
    with redis.Redis.from_url(world.url, protocol=2) as client:
        client.delete(world.cell.keys.claim("a"))  # as the store does after remember_s
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    world.flush()
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert [call.split()[0] for call in world.calls()] == ["start", "stop", "start"]
    assert (await world.host())["claims"] == "1"
    await world.stop(task)


async def test_what_an_epoch_meets_before_its_hook_is_attested_as_being_started(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it were attested as claimed, an expiry or a release would free it at once, although its hook begins."""
    states: list[str] = []
    looks, real = LifecycleContext.missing_capacity, HostCommands.attest

    async def epoch_changes_meanwhile(context: LifecycleContext, work: JournalEntry, amounts: Amounts) -> str:
        if not states:
            await world.cell.raise_epoch((await world.cell.tick()).epoch)
            await wait_until(lambda: bool(states), what="the host has attested")
        return await looks(context, work, amounts)

    async def noted(cell: HostCommands, *arguments: Any, **more: Any) -> AttestReply:
        claims = arguments[3]
        states.extend(one.state for one in claims)
        return await real(cell, *arguments, **more)

    task = await world.start(hook=world.hook)
    monkeypatch.setattr(LifecycleContext, "missing_capacity", epoch_changes_meanwhile)
    monkeypatch.setattr(HostCommands, "attest", noted)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert states[0] is ClaimStatus.STARTING
    await world.stop(task)
