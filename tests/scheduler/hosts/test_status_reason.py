"""Why a host takes no claims: what an operator says is kept until the host is enabled."""

from collections.abc import AsyncIterator, Awaitable

import pytest

from redsched.errors import InvalidRequest, PreconditionFailed
from redsched.model import HostStatus
from redsched.model.filters import EventFilter
from redsched.operate.observe.recorder import Recorder
from redsched.scheduler.hosts.hosts import HostService
from redsched.settings import Settings
from tests.scheduler.working import Work, at_work

WHY = "new GPUs arrive on Monday"


@pytest.fixture
async def work(clean_store: str) -> AsyncIterator[Work]:
    async with at_work(clean_store, 4) as one:
        yield one


@pytest.fixture
def hosts(work: Work) -> HostService:
    return work.scheduler.hosts


async def test_it_is_kept_until_the_host_is_enabled(hosts: HostService) -> None:
    async def shown(change: Awaitable[None]) -> str:
        await change
        [listed] = (await hosts.list()).items
        assert listed.status_reason == (await hosts.get("h0")).status_reason
        return listed.status_reason

    assert await shown(hosts.drain("h0")) == ""
    assert await shown(hosts.drain("h0", reason=WHY)) == WHY
    assert await shown(hosts.drain("h0")) == WHY
    assert await shown(hosts.disable("h0")) == WHY
    assert await shown(hosts.drain("h0", reason="another")) == "another"
    assert await shown(hosts.enable("h0")) == ""


async def test_its_event_has_it(work: Work, hosts: HostService) -> None:
    await hosts.drain("h0", reason=WHY)
    await Recorder(work.store, Settings()).record()
    found = await work.scheduler.events.list(wanted=EventFilter(kind="status"))
    assert [(one.kind, one.facts["status"], one.facts["reason"]) for one in found.items] == [
        ("status", "draining", WHY)
    ]


async def test_a_change_of_it_alone_changes_the_tag(hosts: HostService) -> None:
    await hosts.drain("h0")
    before = await hosts.tag("h0")
    await hosts.drain("h0", reason=WHY, if_match=(before,))
    with pytest.raises(PreconditionFailed):
        await hosts.enable("h0", if_match=(before,))
    await hosts.enable("h0", if_match=(await hosts.tag("h0"),))
    assert await hosts.tag("h0") != before


@pytest.mark.parametrize(
    ("reason", "problem"),
    [
        ("x" * 201, "reason has 201 characters: shorten it to 200"),
        ("two\nlines", "reason must be one line of printable characters"),
    ],
)
async def test_what_cannot_be_one_is_refused(hosts: HostService, reason: str, problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        await hosts.drain("h0", reason=reason)
    assert (await hosts.get("h0")).status is HostStatus.ENABLED
