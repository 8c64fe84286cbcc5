"""Counting a ledger anew from what the cells hold: when a quota is declared, and when a store has lost writes.

        open: the ledger gives nothing --> recall: calls decided before are BEHIND --> read and mark the claims
                                                                   close: it counts <-- count what was found --'

One count of a ledger runs at a time, whoever began it. It needs every cell settled: until then hosts may still bring
claims that belong to it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping

from redsched import tasks
from redsched.errors import Settling
from redsched.model import CLAIMS, Quota
from redsched.names import whole
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.fields import quota_from
from redsched.scheduler.identity import unique
from redsched.scheduler.taken import by_class
from redsched.store import Kind, Ledgers, Marked, Outcome, Taking

COUNT_LEASE_MS = 15_000
"""How long a count may say nothing before another one takes over."""
AGAIN_AFTER_S = 0.05
CLAIMS_AT_ONCE = 200
MOST_TRIES = 100


class _Restart(Exception):
    """Something has changed that the count was begun on."""


class QuotaCount:
    """Counts the ledgers of projects, each once at a time in this process."""

    def __init__(self, cells: Cells, ledgers: Ledgers) -> None:
        self._cells = cells
        self._ledgers = ledgers
        self._running: dict[str, asyncio.Task[bool]] = {}

    async def counted(self, project: str) -> bool:
        """Return when the project's ledger can be relied on; False where it has no quota. Raises Settling."""
        running = self._running.get(project)
        if running is None:
            running = asyncio.create_task(self._counted(project), name=f"redsched-count-{project}")
            self._running[project] = running
            running.add_done_callback(lambda task: self._ended(project, task))
        return await asyncio.shield(running)

    async def stop(self) -> None:
        """End what is being counted: the lease of a count runs out."""
        await tasks.end_all(self._running.values())

    def _ended(self, project: str, task: "asyncio.Task[bool]") -> None:
        self._running.pop(project, None)
        if not task.cancelled():
            task.exception()  # whoever waited has heard it, and nobody may wait any more

    async def declaration(self, project: str) -> tuple[str, Quota] | None:
        """A project's quota as the first cell has it, and the token of that declaration; None where it has none."""
        first = next(iter(self._cells))
        clock = await first.store.tick()
        fields = (await first.store.read_things(Kind.QUOTA, [project])).get(project, {})
        quota = quota_from(project, fields)
        return (f"{clock.epoch}.{whole(fields.get('version', ''), 0)}", quota) if quota else None

    async def _counted(self, project: str) -> bool:
        for _ in range(MOST_TRIES):
            declared = await self.declaration(project)
            if declared is None:
                await self._clear(project)
                return False
            try:
                await self._count(project, *declared)
                return True
            except _Restart:
                await asyncio.sleep(AGAIN_AFTER_S)
        raise Settling(f"what project {project} uses of its quota is being counted: try again")

    async def _count(self, project: str, token: str, quota: Quota) -> None:
        epochs = await self._settled_epochs(project)
        name = unique()
        opened = await self._ledgers.open(project, name, COUNT_LEASE_MS, epochs, token, quota.limits)
        if opened.outcome is Outcome.SAME:
            return
        if opened.outcome is not Outcome.OK:
            raise _Restart
        for cell in self._cells:
            if project not in await cell.store.read_things(Kind.QUOTA, [project]):
                # The cell has lost it, or who declares it has not come so far: no claim may slip by there.
                await cell.store.put_quota(quota)
            recalled = await cell.store.recall(project)
            if recalled.outcome is not Outcome.OK or recalled.epoch != epochs[cell.name]:
                raise _Restart
        found = await self._found(project, name, epochs)
        found += [Taking(one) for one in await self._ledgers.ids(project) - {one.id for one in found}]
        for answer in (
            await self._ledgers.count(project, name, COUNT_LEASE_MS, found),
            await self._ledgers.close(project, name, epochs),
        ):
            if answer.outcome is Outcome.STALE:
                raise _Restart

    async def _settled_epochs(self, project: str) -> dict[str, str]:
        epochs = {}
        for cell in self._cells:
            clock = await cell.store.tick()
            if not clock.settled:
                raise Settling(
                    f"what project {project} uses of its quota is not known yet: cell {cell.name} is in a new epoch "
                    "and its hosts are still attesting; try again"
                )
            epochs[cell.name] = clock.epoch
        return epochs

    async def _found(self, project: str, name: str, epochs: Mapping[str, str]) -> list[Taking]:
        """What the cells hold, under the ids by which owners know it: of a claim and its successor the larger."""
        most: dict[str, Counter[str]] = {}
        where: dict[str, str] = {}
        for cell in self._cells:
            async for epoch, marked in self._marked(cell, project, name):
                if epoch != epochs[cell.name]:
                    raise _Restart
                for one in marked:
                    known_as = one.origin or one.id
                    most[known_as] = most.get(known_as, Counter({CLAIMS: 1})) | by_class(one.amounts)
                    where[known_as] = cell.name
        return [Taking(one, amounts, one, where[one]) for one, amounts in most.items()]

    async def _marked(self, cell: Cell, project: str, name: str) -> AsyncIterator[tuple[str, list[Marked]]]:
        async for living in cell.store.living_on(await cell.store.host_names()):
            theirs = [claim.id for claim in living if claim.project == project]
            for first in range(0, len(theirs), CLAIMS_AT_ONCE):
                yield await cell.store.mark(project, theirs[first : first + CLAIMS_AT_ONCE])
            await self._ledgers.count(project, name, COUNT_LEASE_MS, [])

    async def _clear(self, project: str) -> None:
        """The first cell has no such quota: what another one has is left over from taking it back."""
        for cell in self._cells:
            if project in cell.mirror.columns.declared.quotas:
                await cell.store.delete_quota(project)
