"""Place all members of a gang again at once, after one of them has ended by itself (`gang_on_exit: replace`).

    one member is pending --> the others are asked to stop, and become pending --> none holds anything any more
                                                                                              |
                                                       one call places all of them, or none <-'

Each step depends only on the claims as they are, so any scheduler may do it, at any time and any number of times: each
pending member is listed in `reconcile`. Nothing is placed before all members are gone, so that no member runs twice.
"""

from collections.abc import Sequence
from dataclasses import replace

from redsched import logs
from redsched.errors import ClaimState, NotFound, NoValidHost, StaleToken
from redsched.model import Claim, ClaimStatus, EndReason, GangOnExit
from redsched.scheduler.cells import Cell
from redsched.scheduler.claims.replacements import ReplacementPlacer, ReplacementSpec
from redsched.scheduler.hosts.drain_group import GroupDrain, GroupTarget, as_gang
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.replies import Replacement

log = logs.get_logger(__name__)


class GangRestarter:
    """Places gangs again, over all cells of a scheduler."""

    def __init__(self, replacements: ReplacementPlacer, group_drain: GroupDrain) -> None:
        self._replacements = replacements
        self._group_drain = group_drain
        self._busy: set[tuple[str, ...]] = set()
        """The gangs that this scheduler is working on: all their members are due at the same time."""

    async def pending(self, cell: Cell, claim: Claim) -> list[Claim]:
        """Return the members of a claim's gang that wait to be placed again together."""
        return [one for one in await _members(cell, claim) if _waits(one)]

    async def place(self, cell: Cell, claim: Claim) -> None:
        """Do the next step for the gang of a pending claim. Raises NoValidHost, QuotaExceeded, ClaimState, NotFound."""
        if claim.gang_ids in self._busy:
            return
        self._busy.add(claim.gang_ids)
        try:
            await self._step(cell, claim)
        finally:
            self._busy.discard(claim.gang_ids)

    async def _step(self, cell: Cell, claim: Claim) -> None:
        members = [one for one in await _members(cell, claim) if one.is_live]
        if not any(one.claim_id == claim.claim_id and _waits(one) for one in members):
            return  # it was placed, or has ended, since it was read
        running = [one for one in members if not _waits(one)]
        for one in running:
            reason = (
                f"claim {claim.claim_id} of its gang has ended on {claim.host}, and all of the gang is placed again"
            )
            await cell.store.claims.requeue_with_gang(one.host, one.claim_id, one.token, reason, counted_by(one))
        if running or any(one.placements for one in members):
            return
        try:
            await self._place_all(cell, members)
        except (ClaimState, NotFound, StaleToken) as error:
            if _attempts(await self.pending(cell, claim)) == _attempts(members):
                raise
            log.debug("gang has changed", cell=cell.name, claim=claim.claim_id, problem=error.detail)

    async def _place_all(self, cell: Cell, members: Sequence[Claim]) -> None:
        try:
            await self._claim(cell, members, avoid_tried=True)
        except NoValidHost:
            if not any(one.tried for one in members):
                raise
            await self._claim(cell, members, avoid_tried=False)

    async def _claim(self, cell: Cell, members: Sequence[Claim], avoid_tried: bool) -> None:
        ids = frozenset(one.claim_id for one in members)
        batch = ", ".join(sorted(ids)[:3]) + (", ..." if len(ids) > 3 else "")

        async def find() -> GroupTarget:
            alone = []
            for one in members:
                spec = ReplacementSpec(EndReason.FAILED, exclude=one.tried if avoid_tried else frozenset())
                alone.append(await self._replacements.alone(cell, one, spec, ids))
            return replace(as_gang(f"gang of {batch}", alone), does="is placed again")

        await self._group_drain.claim(cell, members[0], find, _with_gang)


async def _members(cell: Cell, claim: Claim) -> list[Claim]:
    """Return the claims of a claim's gang."""
    return [one for one in (await cell.store.claims.read(claim.gang_ids)).values() if claim.is_with(one)]


def _waits(claim: Claim) -> bool:
    return claim.state is ClaimStatus.PENDING and claim.gang_exit is GangOnExit.REPLACE


def _attempts(claims: Sequence[Claim]) -> dict[str, str]:
    return {one.claim_id: one.retry_from for one in claims}


def _with_gang(claim: Claim) -> Replacement:
    return Replacement(claim.host, claim.retry_from or claim.token, EndReason.FAILED, gang=claim.gang, with_gang=True)
