"""fence.lua through the scripts that include it: when a new epoch starts, when none does, and when a cell settles."""

import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import pytest
import redis

from redsched.model import HostStatus, Request
from redsched.scheduler import Scheduler
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Clock
from redsched.store.embedded.server import PrivateServer, ServerBinary
from redsched.store.store import Store
from tests.support.builders.cells import (
    HOUR_S,
    call_of,
    claim_on,
    declared_keys_cell,
    everything,
    member,
    new_epoch,
    nothing_written,
    open_host,
    raw_client,
    report_of,
)
from tests.support.servers import name_of, servers_of
from tests.support.waiting import wait_until, wait_until_sync


async def meta_of(raw: Any, cell: CellStore) -> dict[str, str]:
    """Return the cell's meta."""
    fields: dict[str, str] = await raw.hgetall(cell.keys.meta)
    return fields


async def replid(raw: Any) -> str:
    """Return the server's replication id."""
    return str((await raw.info("replication"))["master_replid"])


async def test_without_meta_a_cell_starts_in_a_new_epoch_that_is_not_settled(new_cell: CellStore, raw: Any) -> None:
    """New or wiped: the store cannot know which. Only time settles the cell, or an operator who declares it new."""
    clock = await new_cell.tick()
    assert not clock.settled
    assert clock.epoch == f"{clock.now_ms}-{(await replid(raw))[:8]}"
    meta = await meta_of(raw, new_cell)
    assert meta == {
        "epoch": clock.epoch,
        "seq": "0",
        "now_ms": str(clock.now_ms),
        "replid": await replid(raw),
        "run_id": (await raw.info("server"))["run_id"],
        "settled": "0",
        "settle_at_ms": str(clock.now_ms + 60_000),
        "unattested": "-1",
        "began_ms": str(clock.now_ms),
        "schema": "2",
    }
    await open_host(new_cell)
    assert not (await new_cell.tick()).settled
    async with nothing_written(raw):
        assert (
            await new_cell.init()
        ).outcome is Outcome.ALREADY_DONE  # it has a host: an operator can no longer declare it new


async def test_init_settles_a_cell_without_hosts_once(new_cell: CellStore, raw: Any) -> None:
    assert (await new_cell.init()).outcome is Outcome.OK
    assert (await new_cell.tick()).settled
    async with nothing_written(raw):
        assert (await new_cell.init()).outcome is Outcome.ALREADY_DONE


async def test_a_wiped_store_heals_with_the_first_word_of_any_host(cell: CellStore, raw: Any) -> None:
    await open_host(cell)
    before = (await cell.tick()).epoch
    await raw.flushall()
    assert (await cell.hosts.heartbeat("h1", 60)).outcome is Outcome.UNKNOWN
    await open_host(cell)
    clock = await cell.tick()
    assert clock.epoch != before
    assert not clock.settled
    await claim_on(cell)


@pytest.mark.parametrize(("behind_ms", "new"), [(12_000, False), (16_000, True), (-500, False), (-5000, True)])
async def test_time_that_jumps_starts_an_epoch(cell: CellStore, raw: Any, behind_ms: int, new: bool) -> None:
    """meta.now_ms lies so far behind TIME; negative: TIME has gone back. The jump would expire a host's lease."""
    await open_host(cell, report=report_of(lease_s=10))
    await claim_on(cell)
    clock = await cell.tick()
    await raw.hset(cell.keys.meta, "now_ms", clock.now_ms - behind_ms)
    before = await everything(raw)
    again = await cell.tick()
    assert (again.epoch != clock.epoch, again.settled) == (new, not new)
    assert again.seq == clock.seq
    if not new:
        assert await everything(raw) == before
        return
    meta = await meta_of(raw, cell)
    assert (meta["unattested"], meta["seq"], meta["now_ms"]) == ("1", str(clock.seq), str(again.now_ms))
    assert int(again.epoch.partition("-")[0]) > int(clock.epoch.partition("-")[0])
    assert (await cell.claims.place(call_of(again, member("b", "h1")))).looked_at[0].cause == "NOT_ATTESTED"


async def silent_for(cell: CellStore, raw: Any, silent_ms: int) -> Clock:
    """Set the cell back as if nobody had written for so long; return its clock before that."""
    clock = await cell.tick()
    await raw.hset(cell.keys.meta, "now_ms", clock.now_ms - silent_ms)
    return clock


async def test_a_cell_in_which_nobody_wrote_keeps_its_epoch(cell: CellStore, raw: Any) -> None:
    """For days: without leases there is nothing that a jump of time could expire."""
    clock = await silent_for(cell, raw, 3 * 24 * HOUR_S * 1000)
    async with nothing_written(raw):
        again = await cell.tick()
    assert (again.epoch, again.settled) == (clock.epoch, True)
    assert int((await meta_of(raw, cell))["now_ms"]) == again.now_ms


@pytest.mark.parametrize(
    "first", ["tick", "heartbeat", "report", "accept", "renew", "claim", "confirm", "release", "attest"]
)
async def test_a_silence_that_all_leases_outlast_is_no_jump(cell: CellStore, raw: Any, first: str) -> None:
    """Whichever call comes first, of those that pass the deadlines. Leases that had expired before do not count."""
    await open_host(cell)
    placed, gone_ms = await claim_on(cell), (await cell.tick()).now_ms - 60_000
    await raw.zadd(cell.keys.deadlines, {"over": gone_ms})
    await raw.zadd(cell.keys.hosts, {"down": gone_ms})
    clock = await silent_for(cell, raw, 20_000)
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "tick": cell.tick,
        "heartbeat": lambda: cell.hosts.heartbeat("h1", HOUR_S),
        "report": lambda: cell.hosts.report(report_of()),
        "accept": lambda: cell.claims.accept("h1", "a", placed.token, HOUR_S),
        "renew": lambda: cell.claims.renew("h1", "a", placed.token, HOUR_S),
        "claim": lambda: cell.claims.place(call_of(clock, member("b", "h1"))),
        "confirm": lambda: cell.claims.confirm("h1", "a", placed.token),
        "release": lambda: cell.claims.release("h1", "a", placed.token),
        "attest": lambda: cell.hosts.attest("h1", ""),
    }
    assert (await calls[first]()).epoch == clock.epoch
    assert (await cell.tick()).epoch == clock.epoch


@pytest.mark.parametrize("of_host", [True, False])
@pytest.mark.parametrize(("left_ms", "new"), [(-19_000, True), (5000, True), (19_000, True), (25_000, False)])
async def test_a_jump_that_ends_a_lease_starts_an_epoch(
    cell: CellStore, raw: Any, of_host: bool, left_ms: int, new: bool
) -> None:
    """After 20 s, with so much left of a host's or claim's lease: a renewal in its first half is too late, or not."""
    await open_host(cell)
    await claim_on(cell)
    clock = await silent_for(cell, raw, 20_000)
    leases, name = (cell.keys.hosts, "h1") if of_host else (cell.keys.deadlines, "a")
    await raw.zadd(leases, {name: clock.now_ms + left_ms})
    assert ((await cell.tick()).epoch != clock.epoch) == new


async def test_a_cell_that_waits_for_its_hosts_gives_them_their_time(cell: CellStore, raw: Any) -> None:
    """The cell is not settled: time during which the server stood still must not settle it."""
    await open_host(cell)
    await new_epoch(cell)
    clock = await silent_for(cell, raw, 20_000)
    assert not clock.settled
    assert (await cell.tick()).epoch != clock.epoch


async def test_a_script_that_does_not_see_all_leases_takes_each_jump_for_harm(cell: CellStore, raw: Any) -> None:
    await open_host(cell)
    clock = await silent_for(cell, raw, 20_000)
    assert (await cell.init()).epoch != clock.epoch


async def test_the_operator_says_what_a_jump_is(cell: CellStore, raw: Any) -> None:
    clock = await cell.tick()
    await raw.hset(cell.keys.meta, mapping={"jump_s": "100", "now_ms": clock.now_ms - 60_000})
    assert (await cell.tick()).epoch == clock.epoch


async def test_the_time_is_noted_at_most_twice_a_second(cell: CellStore, raw: Any) -> None:
    """Every write costs something; most scripts find a time noted recently, and write none."""
    noted = dict[bool, bool]()

    async def both_are_seen() -> bool:
        for behind_ms in (200, 700):
            before_ms = (await cell.tick()).now_ms - behind_ms
            await raw.hset(cell.keys.meta, "now_ms", before_ms)
            now_ms = (await cell.tick()).now_ms
            is_late = now_ms - before_ms >= 500  # on a slow machine the first one may be, too
            noted[is_late] = int((await meta_of(raw, cell))["now_ms"]) == now_ms
        return len(noted) == 2

    await wait_until(both_are_seen)
    assert noted == {False: False, True: True}


async def test_epochs_grow_though_the_clock_does_not(cell: CellStore) -> None:
    """Agents compare epochs: a later one must be higher, even if the clock went back."""
    high = f"{(await cell.tick()).now_ms + 10**9}-abc"
    first = await cell.raise_epoch(high)
    assert first.outcome is Outcome.OK
    assert first.epoch.startswith(f"{(await cell.tick()).now_ms + 10**9}"[:6])
    again = await cell.raise_epoch(high)
    assert (again.outcome, again.epoch) == (Outcome.ALREADY_DONE, first.epoch)
    second = await new_epoch(cell)
    assert int(second.partition("-")[0]) == int(first.epoch.partition("-")[0]) + 1


async def test_a_raise_of_an_epoch_long_left_writes_nothing(cell: CellStore, raw: Any) -> None:
    async with nothing_written(raw):
        assert (await cell.raise_epoch("1-abc")).outcome is Outcome.ALREADY_DONE


async def test_a_cell_settles_by_time_at_the_latest(cell: CellStore, raw: Any) -> None:
    await open_host(cell, "h1")
    await new_epoch(cell)
    clock = await cell.tick()
    await raw.hset(cell.keys.meta, "settle_at_ms", clock.now_ms + 60_000)
    assert not (await cell.tick()).settled
    await raw.hset(cell.keys.meta, "settle_at_ms", clock.now_ms)
    assert (await cell.tick()).settled
    assert (await meta_of(raw, cell))["settled"] == "1"


async def test_an_epoch_without_known_hosts_is_settled_at_once(cell: CellStore) -> None:
    await new_epoch(cell)
    assert (await cell.tick()).settled


async def test_settle_s_is_how_long_that_takes(cell: CellStore, raw: Any) -> None:
    await cell.hosts.report(report_of())
    await raw.hset(cell.keys.meta, "settle_s", "7")
    epoch_ms = int((await new_epoch(cell)).partition("-")[0])
    assert abs(int((await meta_of(raw, cell))["settle_at_ms"]) - epoch_ms - 7000) <= 1000


# Servers that are idle, are paused, restart, get a replica, and are promoted

JUMP_S, SILENT_S = 1, 1.6


async def some_time_passes() -> None:
    """Let time pass, longer than `jump_s`: time itself is the fault."""
    over_s = monotonic() + SILENT_S
    await wait_until(lambda: monotonic() > over_s)


@pytest.mark.parametrize("lease_s", [None, HOUR_S, 2])
@pytest.mark.parametrize("paused", [False, True])
async def test_an_idle_or_paused_server_starts_an_epoch_where_a_lease_has_suffered(
    fresh_server: PrivateServer, paused: bool, lease_s: int | None
) -> None:
    """Nobody writes for longer than `jump_s`, or the server is stopped for so long; with a host of this lease, or none.

    The two cannot be told apart, and need not be. A scheduler that connects next, and claims at once, sees no new
    epoch unless a lease has suffered.
    """
    async with Store.connect(fresh_server.url) as store, raw_client(fresh_server.url) as raw:
        cell = store.cell("c1")
        await cell.init()
        await raw.hset(cell.keys.meta, "jump_s", JUMP_S)
        if lease_s is not None:
            await open_host(cell, report=report_of(lease_s=lease_s))
        epoch = (await cell.tick()).epoch
    if paused:
        fresh_server.pause()
    await some_time_passes()
    if paused:
        fresh_server.resume()
    async with Scheduler.connect(fresh_server.url) as scheduler:
        if lease_s == HOUR_S:
            await scheduler.select(Request({"VCPU": 1}))
        [now] = [await one.store.tick() for one in scheduler.cells]
    assert (now.epoch != epoch) == (lease_s == 2)


async def test_a_restart_starts_an_epoch_even_when_nothing_was_lost(tmp_path: Path) -> None:
    for binary in servers_of(__file__):
        with PrivateServer.start(binary.path, tmp_path / binary.kind) as server:
            async with Store.connect(server.url) as store, raw_client(server.url) as raw:
                cell = store.cell("c1")
                await cell.init()
                await open_host(cell)
                placed = await claim_on(cell)
                before = await cell.tick()
            server.restart()
            async with Store.connect(server.url) as store, raw_client(server.url) as raw:
                cell = store.cell("c1")
                # Any writing script may be the first to run: none bypasses the fence.
                answer = await cell.claims.confirm("h1", "a", placed.token)
                assert (answer.outcome, answer.epoch != before.epoch) == (Outcome.NOT_ATTESTED, True)
                assert answer.epoch.endswith((await replid(raw))[:8])
                clock = await cell.tick()
                assert (clock.epoch, clock.seq, clock.settled) == (answer.epoch, before.seq, False)
                await cell.hosts.attest("h1", clock.epoch)
                assert (await cell.tick()).settled


@contextmanager
def tcp_server(binary: Path) -> Iterator[int]:
    """Run a server on a TCP port of the loopback, where a replica can reach its primary; yield the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with TemporaryDirectory() as folder:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        options += ["--repl-diskless-sync-delay", "0"]
        process = Popen([binary, *options], stdout=DEVNULL, stderr=DEVNULL)
        try:
            wait_until_sync(lambda: answers(port), what=f"{binary} answers")
            yield port
        finally:
            process.kill()
            process.wait()


def answers(port: int) -> bool:
    """Return whether a server answers on the port."""
    try:
        with redis.Redis(port=port, protocol=2) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


@asynccontextmanager
async def pair(binary: Path) -> AsyncIterator[tuple[str, str]]:
    """The URLs of two servers."""
    with ExitStack() as stack:
        ports = [stack.enter_context(tcp_server(binary)) for _ in range(2)]
        first, second = (f"redis://127.0.0.1:{port}" for port in ports)
        yield first, second


@pytest.mark.parametrize("binary", servers_of(__file__), ids=name_of)
async def test_a_first_replica_is_only_noted_and_a_promotion_starts_an_epoch(binary: ServerBinary) -> None:
    """The same process with a new id and no former one has changed no data. A promoted replica may have lost some."""
    async with pair(binary.path) as (first, second), raw_client(first) as primary, raw_client(second) as replica:
        async with Store.connect(first) as store:
            cell = store.cell("c1")
            await cell.init()
            await open_host(cell)
            clock = await cell.tick()
            old = await replid(primary)
            await replica.execute_command("REPLICAOF", *first.removeprefix("redis://").split(":"))

            async def linked() -> bool:
                info: dict[str, Any] = await replica.info("replication")
                return bool(info.get("master_link_status") == "up")

            await wait_until(linked, what="the replica has synchronised")
            assert await replid(primary) != old
            again = await cell.tick()
            assert (again.epoch, again.settled) == (clock.epoch, True)
            assert (await meta_of(primary, cell))["replid"] == await replid(primary)
            await claim_on(cell)
            assert await primary.execute_command("WAIT", 1, 10_000) == 1
        await replica.execute_command("REPLICAOF", "NO", "ONE")
        async with Store.connect(second) as store:
            cell = store.cell("c1")
            promoted = await cell.tick()
            assert (promoted.epoch != clock.epoch, promoted.settled) == (True, False)
            assert re.fullmatch(rf"\d+-{(await replid(replica))[:8]}", promoted.epoch)
            assert (await cell.claims.place(call_of(promoted, member("b", "h1")))).looked_at[0].cause == "NOT_ATTESTED"


async def test_every_writing_script_has_the_fence_in_front(cell: CellStore, raw: Any) -> None:
    """Each script by itself detects the change, starts the epoch, and returns nothing from before."""
    await open_host(cell)
    placed = await claim_on(cell)
    token = placed.token

    async def changed() -> str:
        """Make the store's data those of another process."""
        await raw.hset(cell.keys.meta, mapping={"replid": "f" * 40, "run_id": "e" * 40})
        epoch: str = await raw.hget(cell.keys.meta, "epoch")
        return epoch

    words = {
        "accept": lambda: cell.claims.accept("h1", "a", token, 60),
        "confirm": lambda: cell.claims.confirm("h1", "a", token),
        "renew": lambda: cell.claims.renew("h1", "a", token, 60),
        "fail": lambda: cell.claims.fail("h1", "a", token, True),
        "work_ended": lambda: cell.claims.work_ended("h1", "a", token, ""),
        "stop_failed": lambda: cell.claims.stop_failed("h1", "a", token, ""),
        "heartbeat": lambda: cell.hosts.heartbeat("h1", 60),
        "init": cell.init,
        "status": lambda: cell.hosts.set_status("nowhere", HostStatus.DRAINING),
        "lost": lambda: cell.hosts.write_off("nowhere"),
        "forget": lambda: cell.hosts.forget("nowhere"),
        "void": lambda: cell.claims.void("a", "digest"),
        "report": lambda: cell.hosts.report(report_of()),
        "attest": lambda: cell.hosts.attest("nowhere", ""),
        "tick": cell.tick,
    }
    for word, say in words.items():
        before = await changed()
        answer: Any = await say()
        assert answer.epoch != before, word
        assert (await meta_of(raw, cell))["epoch"] == answer.epoch, word
    for word, batch in {"reconcile": cell.claims.reconcile(["a"]), "down": cell.hosts.mark_down(["h1"])}.items():
        before = await changed()
        assert await batch == 0, word
        assert (await meta_of(raw, cell))["epoch"] != before, word
    assert (await cell.claims.read("a"))["a"].state == "claimed"
    before = await changed()
    assert (await cell.claims.release("h1", "a", token)).epoch != before  # it would also answer for a known claim


async def test_cells_of_one_store_have_their_own_epochs(clean_store: str) -> None:
    async with declared_keys_cell(clean_store, "c1") as one:
        await one.init()
        epoch = (await one.tick()).epoch
    async with declared_keys_cell(clean_store, "c2") as two:
        await two.init()
        await new_epoch(two)
        assert (await two.tick()).epoch != epoch
    async with declared_keys_cell(clean_store, "c1") as one:
        assert (await one.tick()).epoch == epoch


async def test_who_finds_a_wipe_and_raises_the_epoch_leaves_the_cell_to_wait_for_its_hosts(
    cell: CellStore, raw: Any
) -> None:
    """The wiped cell knows none of them any more: all of them have yet to attest."""
    await open_host(cell)
    ahead = f"{(await cell.tick()).now_ms + 60_000}-f"
    await raw.flushall()
    answer = await cell.raise_epoch(ahead)
    assert answer.outcome is Outcome.OK
    assert not (await cell.tick()).settled
    assert (await meta_of(raw, cell))["unattested"] == "-1"
