"""What the server may forbid: memory, commands, keys. Each causes one clear error, and nothing is half done."""

import asyncio
import re
from typing import Any

import pytest
from redis.exceptions import ResponseError

from redsched.errors import StoreFull, StoreUnavailable
from redsched.model import EndReason, HostStatus
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.client.scripts import load_all
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.support.builders.cells import (
    PASSWORD,
    USER,
    accepted_claim,
    active,
    call_of,
    claim_on,
    declared_keys_cell,
    make_due,
    member,
    new_epoch,
    nothing_written,
    open_host,
    raw_client,
    report_of,
)

CALLED = re.compile(r"redis\.call\('(\w+)'")


async def test_a_full_server_takes_nothing_new_and_lets_everything_end(fresh_server: PrivateServer) -> None:
    async with Store.connect(fresh_server.url) as store, raw_client(fresh_server.url) as raw:
        cell = store.cell("c1")
        await cell.init()
        await open_host(cell)
        tokens = {name: (await accepted_claim(cell, name)).token for name in ("ends", "fails", "confirmed")}
        for name in ("released", "due", "accepted", "renewed", "resized"):
            tokens[name] = (await claim_on(cell, name)).token
        await make_due(raw, cell, "due")
        await raw.config_set("maxmemory", 1)
        clock = await cell.tick()
        async with nothing_written(raw):
            with pytest.raises(StoreFull, match=r"memory \(it uses \d+\.\d MiB, and its maxmemory is") as refused:
                await cell.claims.place(call_of(clock, member("new", "h1")))
            assert refused.value.facts.max_memory_bytes == 1 < refused.value.facts.memory_bytes
            assert fresh_server.url not in refused.value.public
        await raw.script_flush()  # scripts can be loaded, too
        assert (await cell.hosts.set_status("h1", HostStatus.DRAINING)).outcome is Outcome.OK
        assert (await cell.hosts.report(report_of())).outcome is Outcome.OK
        assert (await cell.claims.release("h1", "released")).outcome is Outcome.OK
        assert (await cell.claims.resize("h1", "resized", tokens["resized"], {"VCPU": 2})).outcome is Outcome.OK
        assert (await cell.claims.void("unknown", "digest")).outcome is Outcome.OK
        assert (await cell.claims.fail("h1", "fails", tokens["fails"], True)).outcome is Outcome.OK
        assert (await cell.claims.confirm("h1", "confirmed", tokens["confirmed"])).outcome is Outcome.OK
        assert (await cell.claims.accept("h1", "accepted", tokens["accepted"], 60)).outcome is Outcome.OK
        assert (await cell.claims.renew("h1", "renewed", tokens["renewed"], 60)).outcome is Outcome.OK
        assert (await cell.claims.gone("h1", "ends", tokens["ends"], EndReason.RELEASED, {})).outcome is Outcome.OK
        assert await cell.claims.reconcile(["due"]) == 1
        assert (await cell.hosts.heartbeat("h1", 60)).outcome is Outcome.OK
        assert (await cell.hosts.write_off("h1", force=True)).outcome is Outcome.OK
        assert (await cell.hosts.forget("h1", force=True)).outcome is Outcome.OK


async def test_calls_that_are_refused_together_leave_others_their_replies(fresh_server: PrivateServer) -> None:
    """The server is asked what it uses after the replies of the whole batch."""
    async with Store.connect(fresh_server.url) as store, raw_client(fresh_server.url) as raw:
        cell = store.cell("c1")
        await cell.init()
        await open_host(cell)
        for number in range(3):
            await claim_on(cell, f"a{number}")
        await raw.config_set("maxmemory", 1)
        clock = await cell.tick()
        calls = [
            *(cell.claims.place(call_of(clock, member(f"new-{number}", "h1"))) for number in range(3)),
            *(cell.claims.release("h1", f"a{number}") for number in range(3)),
        ]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(one) for one in found[:3]] == [StoreFull] * 3
        assert [one.outcome for one in found[3:] if isinstance(one, ScriptResult)] == [Outcome.OK] * 3


async def test_a_full_server_can_be_emptied_in_a_new_epoch_by_who_connects_then(fresh_server: PrivateServer) -> None:
    """After a restart or failover, hosts attest and claims end, also those on written-off hosts."""
    async with raw_client(fresh_server.url) as raw:
        async with Store.connect(fresh_server.url) as store:
            cell = store.cell("c1")
            await cell.init()
            for host in ("h1", "h2"):
                await open_host(cell, host)
                await active(cell, f"on-{host}", host)
        await raw.config_set("maxmemory", 1)
        async with Scheduler.connect(fresh_server.url) as scheduler, Store.connect(fresh_server.url) as store:
            cell = store.cell("c1")
            epoch = await new_epoch(cell)
            await open_host(cell, "h1")
            assert (await cell.hosts.attest("h1", epoch)).outcome is Outcome.ALREADY_DONE
            assert await scheduler.claims.release("on-h1")
            await scheduler.hosts.write_off("h2", force=True)
            assert await scheduler.claims.release("on-h2")
            assert await cell.hosts.claim_ids("h1") == await cell.hosts.claim_ids("h2") == set()


def commands_of(name: str) -> set[str]:
    """Return the commands that a script calls."""
    return set(CALLED.findall(load_all()[name].text))


def all_commands() -> list[str]:
    """Return the commands that any script calls."""
    return sorted({command for name in load_all() for command in commands_of(name)})


def test_the_probe_uses_every_command_that_any_script_uses() -> None:
    """Otherwise a claim would fail where the connection should have failed. in_chunks names its command by hand."""
    assert set(all_commands()) | {"HSET", "HDEL"} <= commands_of("probe")


@pytest.mark.parametrize("command", all_commands())
async def test_a_command_that_is_not_permitted_shows_at_connect(server: PrivateServer, command: str) -> None:
    """As one line that says what to do, before anything but the probe's scratch keys is written."""
    async with raw_client(server.url) as operator:
        await operator.flushall()
        rule = f"-{command.lower()}"
        await operator.execute_command("ACL", "SETUSER", "weak", "reset", "on", ">pw", "~*", "&*", "+@all", rule)
        if command == "INFO":
            await operator.execute_command("ACL", "SETUSER", "weak", "+info", "-info")
        try:
            url = server.url.replace("unix://", "unix://weak:pw@")
            with pytest.raises(StoreUnavailable, match=r"lacks a permission: .*; `redsched acl` prints"):
                async with Store.connect(url):
                    pass
            assert [key async for key in operator.scan_iter() if ":probe:" not in key] == []
        finally:
            await operator.execute_command("ACL", "DELUSER", "weak")


async def test_a_key_that_is_not_declared_cannot_be_touched_in_these_tests(clean_store: str, raw: Any) -> None:
    """All scripts are tested as a user who may touch only the keys that a call declares; this tests that limit."""
    async with declared_keys_cell(clean_store) as cell:
        await cell.tick()
        url = clean_store.replace("unix://", f"unix://{USER}:{PASSWORD}@")
        async with raw_client(url) as same_user:
            touch = "#!lua\nreturn redis.call('HGET', '{}', 'seq')"
            assert await same_user.eval(touch.format(cell.keys.meta), 0) == "0"
            with pytest.raises(ResponseError, match=r"(?i)permission|can't access|ACL failure"):
                await same_user.eval(touch.format(cell.keys.host("h1")), 0)


async def test_a_lost_store_is_one_clear_error(fresh_server: PrivateServer) -> None:
    settings = Settings(resend_for_s=0.1)
    async with Store.connect(fresh_server.url, settings) as store:
        cell: CellStore = store.cell("c1")
        await cell.init()
        fresh_server.kill()
        with pytest.raises(StoreUnavailable, match="check that it runs"):
            await cell.hosts.names()
