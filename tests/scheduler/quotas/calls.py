"""The scripts that a scheduler runs for a request, without those that it runs from time to time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from redsched.scheduler import Scheduler
from redsched.store.client.script_client import ScriptClient
from redsched.store.client.scripts import LUA

ABOUT_CLAIMS = {one.name.removesuffix(".lua") for folder in ("claim", "quota") for one in (LUA / folder).iterdir()}


@contextmanager
def scripts_about_claims(scheduler: Scheduler) -> Iterator[list[str]]:
    """Yield the names of the scripts about claims and quotas that the scheduler runs in the block, in order."""
    called, run = list[str](), ScriptClient.run

    async def noted(client: ScriptClient, name: str, *arguments: Any, **more: Any) -> Any:
        if client is scheduler._store.runner and name in ABOUT_CLAIMS:
            called.append(name)
        return await run(client, name, *arguments, **more)

    with patch.object(ScriptClient, "run", noted):
        yield called
