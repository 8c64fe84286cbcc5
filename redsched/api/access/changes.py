"""The changes that a tenant may follow: those of its own claims, until its token ends."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from redsched import aio
from redsched.api.access.redact import Redactor
from redsched.auth.caller import Caller
from redsched.errors import NotFound, RedschedError
from redsched.model.positions import Position, parse_positions
from redsched.model.records.changes import Change
from redsched.scheduler import Scheduler
from redsched.scheduler.claims.by_id import find_claim

MOST_CLAIMS = 20_000
"""The claims whose projects are remembered, as many as a scheduler keeps changes."""
_BEGINS = ("claimed", "local", "restored")
"""Changes that may begin another claim under an id that was used before."""


class ClaimProjects:
    """The projects of the claims in the feed, for all streams of a process. A claim that has ended keeps its project.

    The feed does not have the project of a claim: it is read from the store once for each claim, however many streams
    ask for it.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._known: OrderedDict[str, tuple[Position, asyncio.Future[str | None]]] = OrderedDict()
        """By cell and id of the claim: the change that it was read for, and its project."""

    async def of(self, change: Change) -> str | None:
        """Return the project of the claim that a change is about; None for a change of no claim, or of a lost one."""
        claim_id = change.fields.get("claim")
        if not claim_id:
            return None
        key, at = f"{change.cell}:{claim_id}", parse_positions(change.id)[change.cell]
        read_at, found = self._known.get(key, (at, None))
        # In another epoch, the numbers may be those of other changes.
        is_later = at.epoch != read_at.epoch or at.seq > read_at.seq
        if found is None or (change.op in _BEGINS and is_later):
            found = self._read(key, claim_id, at)
        self._known.move_to_end(key)
        return await asyncio.shield(found)

    def _read(self, key: str, claim_id: str, at: Position) -> "asyncio.Future[str | None]":
        found = aio.detached(self._project(key, claim_id), name="redsched-claim-project")
        self._known[key] = at, found
        while len(self._known) > MOST_CLAIMS:
            self._known.popitem(last=False)
        return found

    async def _project(self, key: str, claim_id: str) -> str | None:
        try:
            return (await find_claim(self._scheduler.cells, claim_id))[1].project
        except NotFound:
            return None
        except RedschedError:
            self._known.pop(key, None)  # to be read again for the next change
            return None


async def own_changes(
    caller: Caller, projects: ClaimProjects, redactor: Redactor, changes: Sequence[Change]
) -> list[Change | None]:
    """Return the changes of the caller's own claims, without what else has changed on their hosts; None for others."""
    return [redactor.change(one) if await projects.of(one) in caller.projects else None for one in changes]
