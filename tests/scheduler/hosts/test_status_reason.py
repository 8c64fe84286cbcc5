"""Why a host takes no claims: what an operator says is kept until the host is enabled."""

from collections.abc import AsyncIterator

import pytest

from redsched.errors import InvalidRequest, PreconditionFailed
from redsched.model import HostStatus
from redsched.scheduler import EventFilter
from redsched.scheduler.background.recorder import Recorder
from redsched.scheduler.hosts.service import HostService
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
    async def shown(status: HostStatus, reason: str = "") -> str:
        await hosts.set_status("h0", status, reason=reason)
        [listed] = (await hosts.list()).items
        assert listed.status_reason == (await hosts.get("h0")).status_reason
        return listed.status_reason

    assert await shown(HostStatus.DRAINING) == ""
    assert await shown(HostStatus.DRAINING, WHY) == WHY
    assert await shown(HostStatus.DRAINING) == WHY
    assert await shown(HostStatus.DISABLED) == WHY
    assert await shown(HostStatus.DRAINING, "another") == "another"
    assert await shown(HostStatus.ENABLED) == ""


async def test_its_event_has_it(work: Work, hosts: HostService) -> None:
    await hosts.set_status("h0", HostStatus.DRAINING, reason=WHY)
    await Recorder(work.store, Settings()).record()
    found = await work.scheduler.events.list(wanted=EventFilter(kind="status"))
    assert [(one.kind, one.facts["status"], one.facts["reason"]) for one in found.items] == [
        ("status", "draining", WHY)
    ]


async def test_a_change_of_it_alone_changes_the_tag(hosts: HostService) -> None:
    await hosts.set_status("h0", HostStatus.DRAINING)
    before = await hosts.tag("h0")
    await hosts.set_status("h0", HostStatus.DRAINING, reason=WHY, if_match=(before,))
    with pytest.raises(PreconditionFailed):
        await hosts.set_status("h0", HostStatus.ENABLED, if_match=(before,))
    await hosts.set_status("h0", HostStatus.ENABLED, if_match=(await hosts.tag("h0"),))
    assert await hosts.tag("h0") != before


@pytest.mark.parametrize(
    ("status", "reason", "problem"),
    [
        (HostStatus.DRAINING, "x" * 201, "reason has 201 characters: shorten it to 200"),
        (HostStatus.DRAINING, "two\nlines", "reason must be one line of printable characters"),
        (HostStatus.ENABLED, WHY, "leave it out to enable one"),
    ],
)
async def test_what_cannot_be_one_is_refused(hosts: HostService, status: HostStatus, reason: str, problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        await hosts.set_status("h0", status, reason=reason)
    assert (await hosts.get("h0")).status is HostStatus.ENABLED
