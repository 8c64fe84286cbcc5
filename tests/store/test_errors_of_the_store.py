"""Errors of the store: which of them pass by themselves, and what callers of the REST API may see of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import redis.asyncio as redis
from redis.exceptions import ResponseError

from redsched.errors import RedschedError, StoreUnavailable
from redsched.model.records.problems import members
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from redsched.store.topology.connection import to_redsched_error
from tests.support.fleets.hosts import fleet
from tests.support.waiting import wait_until

LONG = "local n = 0 while true do n = n + 1 end"
BUSY = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."


@asynccontextmanager
async def long_script(server: PrivateServer) -> AsyncIterator[redis.Redis]:
    """Run a script that does not end by itself while the context is open, and yield a client that may kill it."""
    client = redis.Redis(unix_socket_path=str(server.socket), decode_responses=True)
    async with client:
        threshold = (await client.config_get("busy-reply-threshold"))["busy-reply-threshold"] or 5000
        await client.config_set("busy-reply-threshold", 1)
        other = redis.Redis(unix_socket_path=str(server.socket))
        running = asyncio.ensure_future(other.eval(LONG, 0))
        try:
            await wait_until(lambda: _is_busy(client))
            yield client
        finally:
            if await _is_busy(client):
                await client.script_kill()
            with pytest.raises(ResponseError):
                await running
            await other.aclose()
            await client.config_set("busy-reply-threshold", threshold)


async def _is_busy(client: redis.Redis) -> bool:
    try:
        await client.ping()
    except ResponseError as error:
        return str(error).startswith("BUSY")
    return False


@pytest.mark.usefixtures("clean_store")
async def test_reads_during_a_long_script_are_refused_for_now(server: PrivateServer) -> None:
    """redis-py puts the command before the server's text in pipelines, and that ended agents: it was no BUSY."""
    async with Store.connect(server.url) as store:
        await store.cell("c1").init()
        await fleet(store.cell("c1"), [8])
        async with long_script(server):
            for read in (
                lambda: store.cell("c1").hosts.claim_ids_of(["h1"]),
                lambda: store.cell("c1").hosts.read(["h1"]),
                lambda: store.cell("c1").texts.read("a"),
            ):
                with pytest.raises(StoreUnavailable, match="cannot be used now: BUSY"):
                    await read()


@pytest.mark.usefixtures("clean_store")
async def test_a_script_waits_until_a_long_one_has_ended(server: PrivateServer) -> None:
    async with Store.connect(server.url, Settings(redis_url=server.url, resend_for_s=60)) as store:
        await store.cell("c1").init()
        async with long_script(server) as client:
            before = store.runner.counters.calls
            ticking = asyncio.create_task(store.cell("c1").tick())
            await wait_until(lambda: store.runner.counters.calls >= before + 3)  # it is sent again
            assert not ticking.done()
            await client.script_kill()
            await ticking


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ResponseError(f"Command # 1 (SMEMBERS rs:{{c1}}:claims:h1) of pipeline caused error: ('{BUSY}',)"), 503),
        (ResponseError("Command # 2 (X) of pipeline caused error: ('MISCONF it\\'s full',)"), 503),
        (ResponseError("Command # 3 (HGETALL rs:{c1}:x) of pipeline caused error: ('WRONGTYPE no hash',)"), 500),
        (ResponseError("WRONGTYPE against rs:{c1}:host:h1"), 500),
        (ConnectionError("Error 111 connecting to store.internal:6379"), 503),
        (ResponseError("NOPERM User alice has no permissions to access rs:{c1}:meta"), 503),
    ],
)
def test_a_problem_tells_callers_nothing_about_the_store(error: Exception, kind: int) -> None:
    found = to_redsched_error(error, "redis://alice:secret@store.internal:6379/0")
    assert found.status == kind
    assert "store.internal" in str(found)
    assert "secret" not in str(found)
    shown = members(found)["detail"]
    assert not any(word in shown for word in ("store.internal", "alice", "secret", "rs:{", "6379", "h1")), shown


def test_an_error_without_secrets_is_shown_as_it_is() -> None:
    assert members(RedschedError("a fault"))["detail"] == "a fault"
