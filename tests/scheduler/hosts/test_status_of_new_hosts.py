"""A host that is removed or has never reported: its status is what an operator declared, however often it reports."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from redsched.errors import ClaimState, NotFound
from redsched.model import HostStatus, Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.codec.outcomes import Outcome
from tests.scheduler.working import BY_HAND, Work, at_work
from tests.support.builders.cells import lapse, nothing_written, raw_client, report_of


@pytest.fixture
async def work(clean_store: str) -> AsyncIterator[Work]:
    """Yield the host h0, whose lease runs."""
    async with at_work(clean_store, 8) as found:
        yield found


@pytest.fixture
async def raw(clean_store: str) -> AsyncIterator[Any]:
    async with raw_client(clean_store) as found:
        yield found


async def status_of(work: Work, host: str) -> tuple[HostStatus, str]:
    found = await work.scheduler.hosts.get(host)
    return found.status, found.status_reason


async def test_a_host_whose_lease_runs_is_not_removed(work: Work, raw: Any) -> None:
    """Its agent would report again within seconds, and a host that had been disabled would come back enabled."""
    await work.scheduler.hosts.disable("h0", reason="bad DIMM")
    async with nothing_written(raw):
        with pytest.raises(ClaimState, match=r"host h0 is alive: its lease runs for \d+ s, .* stop its agent"):
            await work.scheduler.hosts.remove("h0")
    await work.hosts[0].speak()
    assert await status_of(work, "h0") == (HostStatus.DISABLED, "bad DIMM")
    await lapse(raw, work.store, "h0")
    await work.scheduler.hosts.remove("h0")
    with pytest.raises(NotFound):
        await work.scheduler.hosts.get("h0")


async def test_one_that_is_removed_by_force_while_it_lives_keeps_its_status(work: Work, raw: Any) -> None:
    await work.active(Request({"VCPU": 1}, claim_ids=("web",)))
    await work.scheduler.hosts.disable("h0", reason="bad DIMM")
    await work.scheduler.hosts.remove("h0", force=True)
    await work.hosts[0].speak()
    assert await status_of(work, "h0") == (HostStatus.DISABLED, "bad DIMM")
    await work.scheduler.hosts.enable("h0")
    await work.scheduler.hosts.remove("h0", force=True)
    await work.hosts[0].speak()
    assert await status_of(work, "h0") == (HostStatus.ENABLED, "")


async def test_a_host_that_was_written_off_can_be_removed(work: Work) -> None:
    await work.store.hosts.write_off("h0", force=True)
    await work.scheduler.hosts.remove("h0")


async def test_a_host_is_disabled_before_its_first_report(work: Work, raw: Any) -> None:
    hosts = work.scheduler.hosts
    with pytest.raises(NotFound, match="to disable it before its first report, use ahead"):
        await hosts.disable("h7")
    await hosts.disable("h7", reason="burn-in first", ahead=True)
    async with nothing_written(raw):
        await hosts.disable("h7", reason="burn-in first", ahead=True)
    [cell] = (await work.scheduler.status()).cells
    assert [(one.name, one.status, one.reason, one.claims) for one in cell.closed] == [
        ("h7", "disabled", "before its first report: burn-in first", 0)
    ]
    await work.store.hosts.report(report_of("h7"))
    assert await status_of(work, "h7") == (HostStatus.DISABLED, "burn-in first")
    await hosts.enable("h7")
    await work.store.hosts.report(report_of("h7", VCPU=4))
    assert await status_of(work, "h7") == (HostStatus.ENABLED, "")
    assert not await raw.exists(work.store.keys.expected)


@pytest.mark.parametrize("verb", ["enable", "remove"])
async def test_that_is_undone_by_enabling_or_removing_it(work: Work, raw: Any, verb: str) -> None:
    hosts = work.scheduler.hosts
    await hosts.disable("h7", ahead=True)
    if verb == "enable":
        await hosts.enable("h7")
    else:
        await hosts.remove("h7")
    await work.store.hosts.report(report_of("h7"))
    assert await status_of(work, "h7") == (HostStatus.ENABLED, "")
    with pytest.raises(NotFound):
        await hosts.enable("h8")
    with pytest.raises(NotFound):
        await hosts.remove("h8")


async def test_a_known_host_is_disabled_at_once(work: Work) -> None:
    await work.scheduler.hosts.disable("h0", ahead=True)
    assert (await status_of(work, "h0"))[0] is HostStatus.DISABLED


async def test_it_is_declared_for_the_cell_that_the_host_will_report_to(clean_store: str) -> None:
    async with Scheduler.connect(clean_store, Settings(cells="c1,c2", tick_s=3600)) as scheduler:
        await scheduler.init()
        await scheduler.hosts.disable("h7", ahead=True)
        await scheduler.cells.named("c2").store.hosts.report(report_of("h7"))
        assert (await scheduler.hosts.get("h7")).status is HostStatus.DISABLED


async def test_new_hosts_join_disabled_if_a_setting_says_so(clean_store: str) -> None:
    """Those that are known keep their status; so does one whose status was declared."""
    closed = BY_HAND.model_copy(update={"enable_new_hosts": False})
    async with Scheduler.connect(clean_store, closed) as scheduler:
        await scheduler.init()
        work = Work(scheduler, scheduler.cells.named("c1").store, [])
        await work.scheduler.hosts.disable("h8", reason="burn-in first", ahead=True)
        for name in ("h7", "h8"):
            await work.scheduler.hosts.report(report_of(name, VCPU=6))
        assert await status_of(work, "h7") == (HostStatus.DISABLED, "new hosts join disabled: enable it once checked")
        assert await status_of(work, "h8") == (HostStatus.DISABLED, "burn-in first")
        await work.scheduler.hosts.enable("h7")
        await work.scheduler.hosts.report(report_of("h7", VCPU=5))
        assert await status_of(work, "h7") == (HostStatus.ENABLED, "")


async def test_a_script_says_why_it_removes_nothing(work: Work) -> None:
    answer = await work.store.hosts.forget("h0")
    assert (answer.outcome, len(answer.facts)) == (Outcome.ALIVE, 1)
