"""Common parts of routes: the scheduler of this process, the names in paths, and the check of query parameters."""

from collections import Counter
from typing import Annotated, get_origin

from fastapi import Depends, Path, Request
from pydantic import BaseModel

from redsched.api.access.callers import caller_of
from redsched.auth.caller import Caller
from redsched.errors import InvalidRequest
from redsched.model.validation import HOST_PATTERN
from redsched.scheduler import Scheduler

HostName = Annotated[str, Path(pattern=HOST_PATTERN, examples=["h17"])]


def scheduler(request: Request) -> Scheduler:
    """Return the scheduler of this process."""
    found: Scheduler = request.app.state.scheduler
    return found


def caller(request: Request) -> Caller:
    """Return the caller of the request."""
    return caller_of(request.scope)


def refuse_query(request: Request) -> None:
    """Raise InvalidRequest if the request has query parameters.

    Otherwise `?claim=false` beside a body would be ignored, and the claim would be made.
    """
    if request.query_params:
        names = ", ".join(repr(name[:80]) for name in list(request.query_params)[:5])
        raise InvalidRequest(f"unknown query parameter {names}: remove it, or put it into the body")


async def _known_query(request: Request) -> None:
    # A route's query model rejects unknown parameters itself, but takes the last value of a repeated one.
    models = [one.field_info.annotation for one in request.scope["route"].dependant.query_params]
    if not models:
        refuse_query(request)
        return
    counts = Counter(name for name, _ in request.query_params.multi_items())
    for name, times in counts.items():
        if times > 1 and name not in _lists(models[0]):
            raise InvalidRequest(f"query parameter {name[:80]!r} is given {times} times: give it once")


def _lists(model: type[BaseModel]) -> set[str]:
    return {name for name, field in model.model_fields.items() if get_origin(field.annotation) is list}


KNOWN_QUERY = Depends(_known_query)
"""The dependency of every router: it rejects unknown query parameters, and repeated ones that are not lists."""
