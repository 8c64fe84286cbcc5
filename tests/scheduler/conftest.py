"""A scheduler over one cell with three hosts, and one over two cells, each as a user for schedulers."""

from collections.abc import AsyncIterator, Iterable

import pytest

from redsched.model import HostReport, Inventory, Request
from redsched.scheduler import Scheduler
from redsched.scheduler.results import Effort
from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from tests.support.store_users import url_as

ONE_AT_A_TIME = Settings(pick_from=1)


async def report_all(scheduler: Scheduler, reports: Iterable[HostReport]) -> None:
    """Report hosts, and wait until the scheduler's replica shows all of them: an earlier decision may miss some."""
    for report in reports:
        await scheduler.hosts.report(report)
    await scheduler.explain(Request({"VCPU": 1}))


def report_of(name: str, cell: str = "c1", **totals: int) -> HostReport:
    return HostReport(name, {slot: Inventory(total) for slot, total in totals.items()}, cell=cell, lease_s=3600)


@pytest.fixture
def efforts() -> list[Effort]:
    """Collect the effort of each selection made by `scheduler`."""
    return []


@pytest.fixture
async def scheduler(clean_store: str, efforts: list[Effort]) -> AsyncIterator[Scheduler]:
    """Yield a scheduler over hosts h1, h2, h3 with 8, 6 and 4 VCPU and as many GiB."""
    async with Scheduler.connect(url_as(clean_store, StoreRole.SCHEDULER), ONE_AT_A_TIME, efforts.append) as opened:
        await opened.init()
        sizes = (("h1", 8), ("h2", 6), ("h3", 4))
        await report_all(opened, [report_of(name, VCPU=vcpu, MEMORY_MB=vcpu * 1024) for name, vcpu in sizes])
        yield opened


@pytest.fixture
async def two_cells(clean_store: str) -> AsyncIterator[Scheduler]:
    """Yield a scheduler over cells a and b: a1 has 8 VCPU in a, b1 has 4 and b2 has 2 in b."""
    settings = Settings(cells=("a", "b"), pick_from=1, policy="pack")
    async with Scheduler.connect(url_as(clean_store, StoreRole.SCHEDULER), settings) as opened:
        await opened.init()
        sizes = (("a1", 8), ("b1", 4), ("b2", 2))
        await report_all(opened, [report_of(name, cell=name[0], VCPU=vcpu) for name, vcpu in sizes])
        yield opened
