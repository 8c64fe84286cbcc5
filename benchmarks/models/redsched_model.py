"""redsched: its Scheduler with a replica fed by the store's change feed, and its claim script.

All settings are the defaults, apart from `pick_from`. Hosts report once with a long lease, and no agent takes up the
claims. The script tries up to eight candidates in one call: those that it passes over count as lost, not as retries.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from benchmarks.claim_work import AT_ONCE, HELD_S
from benchmarks.models.model import Model, Outcome, Scheduler as SchedulerOfModel
from benchmarks.models.rpc import Caller
from benchmarks.models.work import Ask, Setup
from redsched.errors import NoValidHost
from redsched.model import HostReport, Inventory, Request
from redsched.scheduler import Scheduler
from redsched.scheduler.results import Effort
from redsched.settings import Settings
from redsched.store.codec.outcomes import Outcome as ScriptOutcome
from redsched.store.codec.replies import ClaimCall, ClaimReply


def settings(setup: Setup) -> Settings:
    """Return the settings of a run."""
    return Settings(log_level="warning", pick_from=setup.pick_from)


async def prepare(setup: Setup) -> None:
    """Declare the cell new, and report all hosts."""
    async with Scheduler.connect(setup.store_url, settings(setup)) as scheduler:
        await scheduler.init()
        reports = [
            HostReport(spec.name, {kind: Inventory(total) for kind, total in spec.capacity.items()}, lease_s=HELD_S)
            for spec in setup.hosts
        ]
        for first in range(0, len(reports), AT_ONCE):
            await asyncio.gather(*(scheduler.hosts.report(one) for one in reports[first : first + AT_ONCE]))


class RedschedScheduler:
    """Places requests with redsched, and counts what they cost."""

    def __init__(self, scheduler: Scheduler, efforts: list[Effort], passed_over: dict[str, int]) -> None:
        self._scheduler, self._efforts, self._passed_over = scheduler, efforts, passed_over

    async def place(self, ask: Ask) -> Outcome:
        """Select."""
        try:
            found = await self._scheduler.select(Request(ask.amounts, claim_ids=(ask.claim_id,), lease_s=HELD_S))
            host = found.selections[0].host
        except NoValidHost:
            host = ""
        # No other task has run since the selection was observed.
        retries = self._efforts.pop().retries
        return Outcome(host, retries, self._passed_over.pop(ask.claim_id, 0))


def count_passed_over(scheduler: Scheduler) -> dict[str, int]:
    """Count, by claim id, the candidates that the claim script passes over."""
    counts: dict[str, int] = {}
    [cell] = scheduler.cells
    claims = cell.store.claims
    place = claims.place

    async def counting(call: ClaimCall) -> ClaimReply:
        answer = await place(call)
        for number, member in enumerate(call.members):
            is_full = answer.outcome is ScriptOutcome.FULL
            passed = len(member.candidates) if is_full else _candidate(answer, number)
            counts[member.id] = counts.get(member.id, 0) + passed
        return answer

    claims.place = counting  # type: ignore[method-assign]
    return counts


def _candidate(answer: ClaimReply, number: int) -> int:
    return (answer.placed[number].candidate or 0) if answer.placed else 0


@contextlib.asynccontextmanager
async def connect(setup: Setup, number: int, hosts: Caller) -> AsyncIterator[SchedulerOfModel]:  # noqa: ARG001 - hosts are not asked
    """Open a scheduler whose replica has caught up."""
    efforts: list[Effort] = []
    async with Scheduler.connect(setup.store_url, settings(setup), observe=efforts.append) as scheduler:
        yield RedschedScheduler(scheduler, efforts, count_passed_over(scheduler))


MODEL = Model(
    "redsched",
    "a replica in memory, claims by one script in the store",
    connect,
    hosts_decide=False,
    prepare=prepare,
)
