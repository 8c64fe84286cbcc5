"""Nova's caching scheduler: the state of all hosts is read every so often, and requests are decided on the copy.

A decision counts what its own process has consumed since; other schedulers' claims show at the next refresh. Nova
refreshes every 60 s; a run here takes seconds, so the default is 1 s (`--cache-s`). Claims go to the host and to
alternates as in the filter scheduler.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from benchmarks.models.filter_scheduler import HostChooser
from benchmarks.models.model import Model, Scheduler
from benchmarks.models.published import publish_fleet, publishing_state, redis_client, refresh
from benchmarks.models.rpc import Caller
from benchmarks.models.work import Setup


@contextlib.asynccontextmanager
async def connect(setup: Setup, number: int, hosts: Caller) -> AsyncIterator[Scheduler]:
    """Open a scheduler, and refresh its copy until it is closed."""
    async with redis_client(setup) as client:
        chooser = HostChooser(setup, number, hosts)
        await refresh(client, chooser.views)
        refreshing = asyncio.create_task(_refresh_often(client, chooser, setup))
        try:
            yield chooser
        finally:
            refreshing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await refreshing


async def _refresh_often(client: object, chooser: HostChooser, setup: Setup) -> None:
    while True:
        await asyncio.sleep(setup.cache_s)
        await refresh(client, chooser.views, setup.database_s)


MODEL = Model(
    "caching",
    "read all hosts every so often, claim on the host (Nova's caching scheduler)",
    connect,
    hosts_decide=True,
    prepare=publish_fleet,
    publishing=publishing_state,
)
