"""Two releases of redsched on one store: compatible ones run side by side, others fail with instructions to upgrade."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import redis

from redsched.errors import SchemaMismatch
from redsched.model import Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.commands.schema import SCHEMA
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.support.processes.releases import Release, copy_package
from tests.support.waiting import wait_until

SELECT = ("select", "VCPU=1", "--json")


NEXT = SCHEMA.number + 1

Make = Callable[..., Release]


@pytest.fixture(scope="module")
def copy_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int], Path]:
    """Return the folder of a release with this schema `number` and `beside`. Each is copied and compiled once."""

    @cache
    def made(number: int, beside: int) -> Path:
        folder = tmp_path_factory.mktemp(f"release-{number}-{beside}")
        copy_package(folder, number, beside)
        return folder

    return made


@pytest.fixture
def release(copy_of: Callable[[int, int], Path], tmp_path: Path, fresh_server: PrivateServer) -> Make:
    """Return a release that uses the test's server and its own journal; by default with the current schema."""

    def made(number: int = SCHEMA.number, beside: int = SCHEMA.beside) -> Release:
        return Release(copy_of(number, beside), fresh_server.url, tmp_path / f"{number}-{beside}.sqlite")

    return made


@pytest.fixture
async def present(release: Make, fresh_server: PrivateServer) -> Release:
    """The current release, on a server whose cell was just created."""
    async with Store.connect(fresh_server.url) as store:
        await store.cell("c1").init()
    return release()


def schema_of(server: PrivateServer) -> tuple[str | None, str | None]:
    """Return the `schema` and `oldest` fields of the cell."""
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        schema, oldest = client.hmget("rs:{c1}:meta", "schema", "oldest")
    return schema, oldest


def has_reported(server: PrivateServer) -> bool:
    """Return whether any host of the fleet has attested and is up."""
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        hosts = client.zrange("rs:{c1}:hosts", 0, -1)
        states = [client.hmget(f"rs:{{c1}}:host:{host}", "epoch", "alive") for host in hosts]
    return any(epoch and alive == "1" for epoch, alive in states)


async def test_a_release_that_only_adds_works_beside_the_one_before(
    release: Make, fresh_server: PrivateServer, present: Release
) -> None:
    after = release(NEXT, SCHEMA.number)
    agent = present.start("agent", "--fleet", "2")
    try:
        await wait_until(lambda: has_reported(fresh_server), 30, "the fleet has reported")
        assert "true" in present.run("host", "list", "--json").stdout
        assert after.run(*SELECT).returncode == 0
        assert schema_of(fresh_server) == (str(SCHEMA.number + 1), None)
        assert present.run(*SELECT).returncode == 0, "the one before goes on"
        assert "all is well" in after.run("audit").stdout
    finally:
        agent.kill()
        agent.wait()


async def test_a_release_that_changes_things_waits_for_the_operator_and_then_shuts_the_others_out(
    release: Make, fresh_server: PrivateServer, present: Release
) -> None:
    changing = release(NEXT, NEXT)
    agent = present.start("agent", "--fleet", "1")
    try:
        await wait_until(lambda: has_reported(fresh_server), 30, "the fleet has reported")
        assert "true" in present.run("host", "list", "--json").stdout
        assert "sim-" in changing.run("hosts").stdout, "reading changes nothing"
        refused = changing.run(*SELECT)
        assert refused.returncode == SchemaMismatch.exit_code
        assert "run `redsched upgrade`" in refused.stderr
        assert schema_of(fresh_server) == (str(SCHEMA.number), None), "nothing was changed by that"
        async with Scheduler.connect(fresh_server.url, Settings()) as living:
            await living.select(Request({"VCPU": 1}))
            assert changing.run("upgrade").returncode == 0
            assert schema_of(fresh_server) == (str(SCHEMA.number + 1),) * 2
            with pytest.raises(SchemaMismatch, match="upgrade this process"):
                await living.select(Request({"VCPU": 1}))
        outdated = present.run(*SELECT)
        assert outdated.returncode == SchemaMismatch.exit_code
        assert "upgrade this process" in outdated.stderr
        unread = present.run("hosts")
        assert unread.returncode == SchemaMismatch.exit_code
        assert "upgrade this process" in unread.stderr
        assert agent.poll() is None, "an agent keeps its work, and goes on trying"
        assert changing.run("claims", "--json").stdout.count('"claim_id"') == 1, "the refused ones wrote nothing"
    finally:
        agent.kill()
        agent.wait()


@pytest.mark.parametrize("command", ["hosts", "upgrade"])
async def test_a_cell_that_this_release_cannot_read_is_refused_and_left_as_it_is(
    fresh_server: PrivateServer, present: Release, command: str
) -> None:
    with redis.Redis.from_url(fresh_server.url, decode_responses=True) as client:
        client.hset("rs:{c1}:meta", "schema", "1")
        before = client.hgetall("rs:{c1}:meta")
        refused = present.run(command)
        assert refused.returncode == SchemaMismatch.exit_code
        assert "cell c1 has schema 1, and this release reads no schema before 2" in refused.stderr
        assert client.hgetall("rs:{c1}:meta") == before
