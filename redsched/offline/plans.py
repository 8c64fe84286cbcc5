"""Plans on an exported cell: the plan service on a private store that has it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redsched.offline.loading import load, private_settings
from redsched.operate.backup.archive import Archive
from redsched.operate.plans.plans import PlanService
from redsched.scheduler.decide_apart.planner import Planner
from redsched.scheduler.scheduler import Scheduler, plugins_of
from redsched.settings import Settings
from redsched.store.store import Store


@asynccontextmanager
async def plans_on(url: str, archive: Archive, settings: Settings, limit_s: float) -> AsyncIterator[PlanService]:
    """Load an exported cell into the empty private store at `url`, and yield plans on it of up to `limit_s` each.

    All of its hosts count as up, members of a gang that was starting as claims of their own, and weighers of GPUs go by
    the settings: the file does not say otherwise. However many claims there are, plans may read all of them. Raises
    StoreUnavailable, ClaimState.
    """
    settings = private_settings(settings, url, archive.head.cell)
    async with Store.connect(url, settings) as store:
        await load(store.cell(archive.head.cell), archive)
    async with Store.connect(url, settings, read_only=True) as store:
        scheduler = Scheduler(store, settings, plugins_of(settings), planner=Planner(limit_s, is_alone=True))
        async with scheduler.on_demand():
            for cell in scheduler.cells:
                await cell.updater.start()  # plans alone would wait for it no longer than a request does
            yield scheduler.plans
