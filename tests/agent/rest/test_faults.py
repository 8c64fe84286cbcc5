"""Agents over REST while their API, its worker, its store or their token fails."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from redsched.errors import Forbidden, OtherAgent, OutcomeUnknown, Unauthenticated
from redsched.model import ClaimStatus, HostReport, Inventory
from redsched.serve.supervisor import Workers
from redsched.store.commands.claims import ClaimCommands
from redsched.store.store import Store
from tests.agent.conftest import HOSTS, SHORT_LIVED, World, api_settings
from tests.support.builders.cells import usual_settings
from tests.support.processes.served_api import AgentToken, serving
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("often")


@asynccontextmanager
async def rest_world(url: str, folder: Path) -> AsyncIterator[World]:
    """Yield an empty cell with an agent's token, without an API."""
    async with Store.connect(url, usual_settings()) as store:
        await store.cell("c1").init()
        world = World(url, store.cell("c1"), folder, token=AgentToken(folder, HOSTS))
        yield world
        await world.close()


async def test_an_api_that_is_restarted_is_an_outage_in_which_work_goes_on(clean_store: str, tmp_path: Path) -> None:
    async with rest_world(clean_store, tmp_path) as world:
        assert world.token is not None
        async with AsyncExitStack() as first:
            served = serving(api_settings(clean_store), world.token.authenticator)
            world.api = await first.enter_async_context(served)
            await world.start(hook=world.hook)
            await world.place("a")
            await world.reaches("a", ClaimStatus.ACTIVE)
        # Placed while there is no API: the notification waits in the inbox.
        await world.place("b")
        port = urlsplit(world.api).port or 0
        async with serving(api_settings(clean_store), world.token.authenticator, port):
            await world.reaches("b", ClaimStatus.ACTIVE)
            await world.cell.claims.release("h1", "a")
            await world.reaches("a", ClaimStatus.ENDED)
        assert [call.split()[:2] for call in world.calls()] == [["start", "a"], ["start", "b"], ["stop", "a"]]


async def test_a_worker_that_is_killed_during_a_start_loses_nothing(clean_store: str, tmp_path: Path) -> None:
    """The second worker is on the same port, and knows nothing of the first one's agents."""
    async with rest_world(clean_store, tmp_path) as world:
        world.token = None
        with Workers("127.0.0.1", 0, 1) as workers:
            await asyncio.to_thread(workers.start, {"REDSCHED_REDIS_URL": clean_store, "REDSCHED_LOG_LEVEL": "error"})
            world.on("start", "while [ ! -e $(dirname $0)/go ]; do sleep 0.02; done")
            await world.start(api=workers.url, hook=world.hook)
            await world.place("a")
            await wait_until(lambda: world.calls("start") != [], timeout=30)
            [before] = workers.pids
            os.kill(before, signal.SIGKILL)
            (world.folder / "go").touch()

            async def revived() -> bool:
                await asyncio.to_thread(workers.revive)
                return workers.pids != [before]

            await wait_until(revived, timeout=30)
            await world.reaches("a", ClaimStatus.ACTIVE)
            assert len(world.calls("start")) == 1
            await world.close()


async def test_a_reply_that_is_lost_is_asked_for_again(
    clean_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command has run, and the worker does not learn it: the repeated call gets ALREADY_DONE."""
    confirm, lost = ClaimCommands.confirm, list[str]()

    async def confirm_and_fail(self: ClaimCommands, *arguments: object, **named: object) -> object:
        answer = await confirm(self, *arguments, **named)  # type: ignore[arg-type]
        if len(lost) < 3:
            lost.append(answer.outcome.value)
            raise OutcomeUnknown("the store's reply was lost")
        return answer

    monkeypatch.setattr(ClaimCommands, "confirm", confirm_and_fail)
    async with rest_world(clean_store, tmp_path) as world:
        assert world.token is not None
        async with serving(api_settings(clean_store), world.token.authenticator) as world.api:
            await world.start(hook=world.hook)
            await world.place("a")
            await wait_until(lambda: len(lost) == 3, timeout=30)
            await world.reaches("a", ClaimStatus.ACTIVE)
            assert lost == ["OK", "ALREADY_DONE", "ALREADY_DONE"]
            assert len(world.calls("start")) == 1
            await world.close()


async def test_a_revoked_token_stops_nothing_and_a_new_one_is_used_at_once(clean_store: str, tmp_path: Path) -> None:
    async with rest_world(clean_store, tmp_path) as world:
        token = world.token
        assert token is not None
        async with serving(api_settings(clean_store), token.authenticator) as world.api:
            task = await world.start([SHORT_LIVED], hook=world.hook)
            await world.place_soon("a")
            await world.reaches("a", ClaimStatus.ACTIVE)
            token.allow()
            token.watched.look()
            await wait_until(lambda: is_down(world), timeout=30, what="the lease expires without heartbeats")
            assert not task.done()
            assert world.calls("stop") == []
            token.write("another")
            token.allow("another")
            token.watched.look()
            await wait_until(lambda: is_up(world), timeout=30, what="the host is back")
            await world.place_soon("b")
            await world.reaches("b", ClaimStatus.ACTIVE)
            assert world.calls("stop") == []
            await world.close()


async def is_up(world: World) -> bool:
    return (await world.host()).get("alive") == "1"


async def is_down(world: World) -> bool:
    await world.sweep()
    return (await world.host()).get("alive") == "0"


async def test_an_agent_whose_token_is_refused_at_the_start_says_so(clean_store: str, tmp_path: Path) -> None:
    async with rest_world(clean_store, tmp_path) as world:
        assert world.token is not None
        async with serving(api_settings(clean_store), world.token.authenticator) as world.api:
            world.token.write("unknown")
            with pytest.raises(Unauthenticated):
                await world.start()


async def test_an_agent_with_the_token_of_another_host_ends(clean_store: str, tmp_path: Path) -> None:
    """The API accepts the token, and refuses the first report."""
    async with rest_world(clean_store, tmp_path) as world:
        assert world.token is not None
        async with serving(api_settings(clean_store), world.token.authenticator) as world.api:
            with pytest.raises(Forbidden, match="host 'foreign' is none of the hosts of the token of 'agent'"):
                await world.start([HostReport("foreign", {"VCPU": Inventory(8)})])


async def test_of_two_agents_for_one_host_the_second_ends(clean_store: str, tmp_path: Path) -> None:
    async with rest_world(clean_store, tmp_path) as world:
        assert world.token is not None
        async with serving(api_settings(clean_store), world.token.authenticator) as world.api:
            first = await world.start()
            with pytest.raises(OtherAgent):
                await world.start(journal="other.sqlite")
            assert not first.done()
            await world.close()


async def test_a_lost_store_is_restored_from_the_journals(clean_store: str, tmp_path: Path) -> None:
    async with rest_world(clean_store, tmp_path) as world:
        assert world.token is not None
        async with serving(api_settings(clean_store), world.token.authenticator) as world.api:
            await world.start(hook=world.hook)
            await world.place("a")
            before = await world.reaches("a", ClaimStatus.ACTIVE)
            world.flush()
            after = await world.reaches("a", ClaimStatus.ACTIVE)
            assert after.slots == before.slots
            assert after.token == before.token
            assert [call.split()[0] for call in world.calls()] == ["start"]
            await world.close()
