"""Limits for each caller in one worker: requests, waiting requests and streams; the next gets 429, others do not."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from redsched.api.access.callers import CALLER
from redsched.api.access.in_progress import InProgress
from redsched.api.disconnect import unless_gone
from redsched.auth.caller import UNRESTRICTED, Caller, Limits
from redsched.errors import RedschedError
from redsched.model.role import Role
from redsched.serve.problems import problem
from tests.api.parts import check_problem
from tests.support.waiting import wait_until

LIMITS = Limits(requests=3, waiting=2, streams=1)
A, B = (Caller(id=name, role=Role.TENANT, limits=LIMITS) for name in "ab")


class _App:
    """Every request takes until it is released; at /wait it waits as selections do."""

    def __init__(self) -> None:
        self.released, self.running = asyncio.Event(), 0
        self.counting = InProgress(self._serve)
        self.caller = A

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.counting({**scope, CALLER: self.caller}, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.running += 1
        try:
            if scope["path"] == "/wait":
                await unless_gone(Request(scope, _never), self.released.wait())
            elif scope["path"] == "/fail":
                raise ZeroDivisionError
            else:
                await self.released.wait()
        except RedschedError as error:
            return await problem(error)(scope, receive, send)
        finally:
            self.running -= 1
        return await Response()(scope, receive, send)


async def _never() -> Any:
    await asyncio.Event().wait()


Ask = Callable[[str], Coroutine[Any, Any, httpx.Response]]


@pytest.fixture
def app() -> _App:
    return _App()


@pytest.fixture
def ask(app: _App) -> Ask:
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://localhost"
    )
    return client.get


async def begun(app: _App, ask: Ask, path: str, count: int) -> list["asyncio.Task[httpx.Response]"]:
    before = app.running
    found = [asyncio.create_task(ask(path)) for _ in range(count)]
    await wait_until(lambda: app.running == before + count)
    return found


@pytest.mark.parametrize(
    ("path", "most", "limit"), [("/v1/hosts", 3, "requests"), ("/wait", 2, "waiting"), ("/v1/changes", 1, "streams")]
)
async def test_the_next_one_is_refused_and_other_callers_are_not(
    app: _App, ask: Ask, path: str, most: int, limit: str
) -> None:
    in_progress = await begun(app, ask, path, most)
    refused = await ask(path)
    found = check_problem(refused, 429, "too-many-requests")
    assert (found["limit"], found["most"], refused.headers["retry-after"]) == (limit, most, "1")
    app.caller = B
    in_progress += await begun(app, ask, path, most)
    app.released.set()
    assert {one.status_code for one in await asyncio.gather(*in_progress)} == {200}
    assert app.counting.counts == {}
    assert (await ask(path)).status_code == 200


async def test_streams_and_waiting_requests_leave_room_for_others(app: _App, ask: Ask) -> None:
    in_progress = [*await begun(app, ask, "/wait", 2), *await begun(app, ask, "/v1/changes", 1)]
    in_progress += await begun(app, ask, "/v1/hosts", 1)
    assert (await ask("/v1/hosts")).status_code == 429
    app.released.set()
    assert {one.status_code for one in await asyncio.gather(*in_progress)} == {200}


async def test_what_fails_or_is_cancelled_is_no_longer_counted(app: _App, ask: Ask) -> None:
    for _ in range(10):
        with pytest.raises(ZeroDivisionError):
            await app.counting({"type": "http", "path": "/fail", CALLER: A}, _never, _nowhere)
    for one in await begun(app, ask, "/wait", 2):
        one.cancel()
        await asyncio.wait([one])
    assert app.counting.counts == {}


async def _nowhere(_message: Any) -> None:
    pass


async def test_without_authentication_there_is_no_limit(app: _App, ask: Ask) -> None:
    app.caller = UNRESTRICTED
    in_progress = [*await begun(app, ask, "/v1/hosts", 40), *await begun(app, ask, "/wait", 40)]
    app.released.set()
    assert {one.status_code for one in await asyncio.gather(*in_progress)} == {200}
