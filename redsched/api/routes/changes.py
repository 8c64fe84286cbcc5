"""GET /v1/changes: every change that can alter a decision, as server-sent events."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from redsched.api.access.callers import sees_all_claims
from redsched.api.access.changes import own_changes
from redsched.api.access.redact import Redactor
from redsched.api.openapi import answers
from redsched.api.routes.common import KNOWN_QUERY, caller, scheduler
from redsched.errors import InvalidRequest, NotFound
from redsched.scheduler import Change, Reset
from redsched.schema.responses import ChangeAnswer

router = APIRouter(tags=["changes"], dependencies=[KNOWN_QUERY])

Item = TypeVar("Item")
VALID_EVERY_S = 1.0
"""How often an idle stream checks that its caller's token has neither expired nor been revoked."""
LastEventId = Annotated[
    str,
    Header(
        alias="Last-Event-ID",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,62}:[0-9]{1,16})?$",
        description="The `id` of the last event received, to resume after it. Empty: only new changes.",
    ),
]


async def _follow(request: Request, last_event_id: LastEventId = "") -> AsyncIterator[Change | Reset]:
    by, changes = caller(request), scheduler(request).changes(last_event_id)
    if sees_all_claims(by):
        return changes
    return own_changes(by, request.app.state.claim_projects, Redactor(request), changes)


# A dependency, because those may reject: when the route itself begins, the 200 has been sent.
Followed = Annotated[AsyncIterator[Change | Reset], Depends(_follow)]

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`change` events, with `<cell>:<seq>` as id. `reset`: the feed has a gap; reload the state.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.get(
    "/v1/changes",
    summary="Follow changes",
    response_class=EventSourceResponse,
    responses={**STREAM, **answers({}, InvalidRequest, NotFound)},
)
async def follow_changes(request: Request, followed: Followed) -> AsyncIterator[ServerSentEvent]:
    """Stream changes as server-sent events until the client disconnects, its token ends, or the server stops."""
    is_valid = partial(request.app.state.is_valid, caller(request))
    async for one in _until(request.app.state.closing, followed, is_valid):
        yield _event(one)


def _event(one: Change | Reset) -> ServerSentEvent:
    if isinstance(one, Reset):
        return ServerSentEvent(event="reset", id=f"{one.cell}:{one.seq}", data={"cell": one.cell})
    return ServerSentEvent(event="change", id=f"{one.cell}:{one.seq}", data=ChangeAnswer.of(one))


async def _until(
    closing: asyncio.Event, items: AsyncIterator[Item], is_valid: Callable[[], bool]
) -> AsyncIterator[Item]:
    """Yield the items until `closing` is set: an open stream would keep the server from stopping.

    Also ends when the caller is no longer valid, which is checked before each item and every VALID_EVERY_S.
    """
    ended = asyncio.ensure_future(closing.wait())
    try:
        while True:
            upcoming = asyncio.ensure_future(anext(items))
            try:
                while not upcoming.done():
                    await asyncio.wait((upcoming, ended), timeout=VALID_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
                    if not is_valid() or (ended.done() and not upcoming.done()):
                        return
                yield upcoming.result()
            except StopAsyncIteration:
                return
            finally:
                await _cancelled(upcoming)
    finally:
        await _cancelled(ended)


async def _cancelled(task: "asyncio.Future[Any]") -> None:
    task.cancel()
    await asyncio.wait((task,))
