"""What routes share: the scheduler of this process, and the names in paths."""

from typing import Annotated

from fastapi import Path, Request

from redsched.names import NAME_PATTERN
from redsched.scheduler import Scheduler

HostName = Annotated[str, Path(pattern=NAME_PATTERN, examples=["h17"])]
ClaimId = Annotated[str, Path(pattern=NAME_PATTERN, examples=["6f1c"])]


def scheduler(request: Request) -> Scheduler:
    """The scheduler of this process."""
    found: Scheduler = request.app.state.scheduler
    return found
