"""Two releases of redsched on one store: those that can work side by side do, the others refuse and say what to do."""

from pathlib import Path

import pytest
import redis

from redsched.errors import SchemaMismatch
from redsched.model import Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.commands.schema import SCHEMA
from redsched.store.embedded.server import PrivateServer
from tests.support.releases import Release, release
from tests.support.waiting import wait_until

SELECT = ("select", "VCPU=1", "--json")


@pytest.fixture
def present(tmp_path: Path, fresh_server: PrivateServer) -> Release:
    """This release, with a cell that was declared new."""
    found = release(tmp_path / "present", fresh_server.url)
    assert found.run("init").returncode == 0
    return found


def schema_of(server: PrivateServer) -> tuple[str | None, str | None]:
    """`schema` and `oldest` of the cell."""
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        schema, oldest = client.hmget("rs:{c1}:meta", "schema", "oldest")
    return schema, oldest


async def test_a_release_that_only_adds_works_beside_the_one_before(
    tmp_path: Path, fresh_server: PrivateServer, present: Release
) -> None:
    after = release(tmp_path / "after", fresh_server.url, SCHEMA.number + 1, SCHEMA.number)
    agent = present.start("agent", "--fleet", "2")
    try:
        await wait_until(lambda: "true" in present.run("host", "list", "--json").stdout, what="the fleet has reported")
        assert after.run(*SELECT).returncode == 0
        assert schema_of(fresh_server) == (str(SCHEMA.number + 1), None)
        assert present.run(*SELECT).returncode == 0, "the one before goes on"
        assert "all is well" in after.run("audit").stdout
    finally:
        agent.kill()
        agent.wait()


async def test_a_release_that_changes_things_waits_for_the_operator_and_then_shuts_the_others_out(
    tmp_path: Path, fresh_server: PrivateServer, present: Release
) -> None:
    changing = release(tmp_path / "changing", fresh_server.url, SCHEMA.number + 1, SCHEMA.number + 1)
    agent = present.start("agent", "--fleet", "1")
    try:
        await wait_until(lambda: "true" in present.run("host", "list", "--json").stdout, what="the fleet has reported")
        refused = changing.run("hosts")
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
        assert "cell c1 is of schema 1, and this release reads no schema before 2" in refused.stderr
        assert client.hgetall("rs:{c1}:meta") == before
