"""GET /v1/changes: every change that can alter a decision, as server-sent events."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from redsched.api.access.callers import sees_all_claims
from redsched.api.access.changes import own_changes
from redsched.api.access.redact import Redactor
from redsched.api.change_stream import ChangeStream, event_of
from redsched.api.openapi import answers
from redsched.api.routes.common import KNOWN_QUERY, caller, scheduler
from redsched.errors import InvalidRequest, NotFound
from redsched.model.positions import ID_PATTERN
from redsched.operate.observe.change_log import ChangeLog

router = APIRouter(tags=["changes"], dependencies=[KNOWN_QUERY])

LastEventId = Annotated[
    str,
    Header(
        alias="Last-Event-ID",
        pattern=f"^({ID_PATTERN})?$",
        description="The `id` of the last event received, to resume after it: `<cell>:<epoch>:<seq>`, one for each "
        "cell. Empty: only new changes.",
    ),
]

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`change` events, with the position in each cell as id. `reset`: changes of a cell are missing, "
        "since the feed has a gap, `Last-Event-ID` is of another epoch or does not name the cell, or the reader is "
        "more than 4 MiB behind; reload the state.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.get(
    "/v1/changes",
    summary="Follow changes",
    response_class=Response,
    responses={**STREAM, **answers({}, InvalidRequest, NotFound)},
)
async def follow_changes(request: Request, last_event_id: LastEventId = "") -> ChangeStream:
    """Stream changes as server-sent events until the client disconnects, its token ends, or the server stops."""
    by, state = caller(request), request.app.state
    shown = None if sees_all_claims(by) else partial(own_changes, by, state.claim_projects, Redactor(request))
    reader = _log(request).reader(last_event_id, shown)
    return ChangeStream(reader, state.closing, partial(state.is_valid, by))


def _log(request: Request) -> ChangeLog:
    """Return the one log of this worker, which begins with its first reader."""
    state = request.app.state
    if state.change_log is None:
        state.change_log = scheduler(request).change_log(event_of)
    found: ChangeLog = state.change_log
    return found
