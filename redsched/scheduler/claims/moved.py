"""The claims that were placed anew, or lost their place, while a list of claims was read."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from itertools import islice

from redsched.model import Claim, ClaimStatus, accepts
from redsched.model.filters import ClaimFilter
from redsched.model.positions import Position
from redsched.model.tokens import is_newer_token
from redsched.scheduler.cells import Cell
from redsched.scheduler.claims.cursor import MOST_PASSES, Cursor, Marks, Place
from redsched.scheduler.claims.listing import walk_claims
from redsched.store.commands.base import CLAIMS_AT_ONCE, chunks

_STAYS = frozenset(("ending", "resizing", "resized", "resize-failed"))
"""Changes after which a claim is where it was."""

Ids = Mapping[Cell, "set[str] | None"]
"""The claims of each cell that may have moved; None if that is not known."""


def marks_of(cells: Sequence[Cell]) -> Marks:
    """Return how far these cells have come at least. The caller has the replicas catch up."""
    return {cell.name: Position(cell.name, cell.updater.epoch, cell.updater.seq) for cell in cells}


def pass_after(cells: Sequence[Cell], last: Cursor) -> Cursor | None:
    """Return the pass that follows the one that `last` is at the end of; None if no claim may have moved meanwhile.

    The caller has the replicas catch up.
    """
    began = marks_of(cells)
    is_idle = all(name in last.began and last.began[name] == mark for name, mark in began.items())
    if (
        is_idle
        or last.number >= MOST_PASSES
        or not any(ids is None or ids for ids in _changed(cells, last.began).values())
    ):
        return None
    return Cursor(last.number + 1, began, last.began)


async def walk_pass(cells: "list[Cell]", wanted: ClaimFilter, at: Cursor) -> AsyncGenerator[tuple[Place, Claim], None]:
    """Yield the matching claims of a pass after its place, in order: all, or those that have moved since the last.

    What has been placed since this pass began is left to the next one, which has it in any case.
    """
    found = walk_claims(cells, wanted, at.place) if at.number == 1 else _moved(cells, wanted, at)
    async for place, claim in found:
        began = at.began.get(claim.cell)
        if at.number == MOST_PASSES or began is None or not _is_placed_after(claim, began):
            yield place, claim


async def _moved(cells: "list[Cell]", wanted: ClaimFilter, at: Cursor) -> AsyncIterator[tuple[Place, Claim]]:
    """Yield the matching claims after the cursor's place that have moved since the pass before, in order."""
    if None not in (ids := _changed(cells, at.since)).values():
        found = [one async for one in _of(ids, wanted, at.since) if one[0] > at.place]
        for one in sorted(found, key=lambda one: one[0]):
            yield one
        return
    since = {cell.name: _since(cell, at.since) for cell in cells}
    async for place, claim in walk_claims(cells, wanted, at.place):
        if _has_moved(claim, since[claim.cell]):
            yield place, claim


def _changed(cells: Sequence[Cell], since: Marks) -> Ids:
    return {cell: _changed_in(cell, _since(cell, since)) for cell in cells}


def _since(cell: Cell, since: Marks) -> Position | None:
    """Return how far a cell had come; None if that is not known, or it is in another epoch now."""
    mark = since.get(cell.name)
    return mark if mark is not None and mark.epoch == cell.updater.epoch else None


def _changed_in(cell: Cell, since: Position | None) -> "set[str] | None":
    updater = cell.updater
    oldest = updater.recent[0].seq if updater.recent else updater.seq + 1
    if since is None or not oldest - 1 <= since.seq <= updater.seq:
        return None
    changes = islice(updater.recent, since.seq + 1 - oldest, None)
    return {one.fields["claim"] for one in changes if one.fields.get("claim") and one.op not in _STAYS}


async def _of(ids: Ids, wanted: ClaimFilter, since: Marks) -> AsyncIterator[tuple[Place, Claim]]:
    """Yield those of the claims with these ids that match and have moved, each at each of its places that match."""
    for cell, some in ids.items():
        in_zone = set(cell.updater.columns.names_where(zone=wanted.zone)) if wanted.zone and some else None
        for batch in chunks(sorted(some or ()), CLAIMS_AT_ONCE):
            for claim in (await cell.store.claims.read(batch)).values():
                for place, view in _views(claim, wanted):
                    is_here = in_zone is None or place[0] in in_zone
                    if is_here and wanted.matches(view) and _has_moved(view, since[cell.name]):
                        yield place, view


def _views(claim: Claim, wanted: ClaimFilter) -> Iterator[tuple[Place, Claim]]:
    """Yield a claim at its places in a list, as `walk_claims` has them."""
    if not claim.placements:
        is_shelved = wanted.includes_shelved and claim.is_shelved
        if is_shelved or (wanted.includes_unplaced and claim.state is ClaimStatus.PENDING):
            yield ("", claim.claim_id), claim
    elif wanted.includes_placed and not wanted.host:
        yield (claim.host, claim.claim_id), claim
    elif wanted.includes_placed:
        for host in claim.hosts:
            if accepts(wanted.host, host) and (view := claim.on(host)):
                yield (host, claim.claim_id), view


def _has_moved(claim: Claim, since: Position | None) -> bool:
    """Return whether a claim may have got its place, or lost it, since then; True if that is not known."""
    if since is None or not claim.placements or _is_placed_after(claim, since):
        return True
    # A target that was placed before that becomes the main placement once it is active.
    return any(one.root != one.placed for one in claim.placements if one.token == claim.token)


def _is_placed_after(claim: Claim, mark: Position) -> bool:
    return is_newer_token(claim.placed, f"{mark.epoch}.{mark.seq}")
