"""Claims by their ids, over all cells: which cell has the authoritative claim, and how those of the others end."""

import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NoReturn

from redsched import aio
from redsched.errors import NotFound
from redsched.model import Claim, ClaimStatus, EndReason
from redsched.model.records.problems import NotFoundFacts
from redsched.model.validation import check_name
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.hosts.fields import LEASE_FIELDS, is_live
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.outcomes import Outcome

_UNIQUE = re.compile("[0-9a-f]{24}")

_LIVE, _SHELVED, _ENDING, _ENDED = range(4)
"""What is left of a claim, in the order in which cells with the same id take precedence."""


def new_claim_id(cell: str) -> str:
    """Return an id for a new claim in a cell, in the form that `made_for` recognizes."""
    return f"{cell}.{os.urandom(12).hex()}"


def made_for(cell: str, claim_id: str) -> bool:
    """Return whether an id has the form that schedulers generate for a cell: its name, a dot, a unique part."""
    name, dot, rest = claim_id.rpartition(".")
    return bool(dot) and name == cell and _UNIQUE.fullmatch(rest) is not None


async def find_claim(cells: Cells, claim_id: str) -> tuple[Cell, Claim]:
    """Return the authoritative claim with this id, and its cell. Raises as `find_claims` does."""
    return (await find_claims(cells, claim_id))[0]


async def find_claims(cells: Cells, claim_id: str) -> list[tuple[Cell, Claim]]:
    """Return the claims with this id and their cells, read from the store; the authoritative claim comes first.

    Raises NotFound, or Settling while a host may still restore such a claim.
    """
    found = await _known_in_all(cells, [check_name("claim id", claim_id)])
    if not found:
        await cells.refuse_unsettled(f"claim {claim_id}")
        # The host may have restored the claim after the first read, and its cell may have settled only then.
        found = await _known_in_all(cells, [claim_id])
    if not found:
        raise no_such_claim(claim_id)
    return [(cell, claims[claim_id]) for cell, claims in found]


async def refuse_unknown(cells: Cells, claim_id: str) -> NoReturn:
    """Raise what `find_claims` raises for an id that no cell knows, for callers who may not know the claim."""
    await cells.refuse_unsettled(f"claim {claim_id}")
    raise no_such_claim(claim_id)


async def find_known(cells: Cells, claim_ids: Sequence[str]) -> tuple[Cell, dict[str, Claim]] | None:
    """Return the cell with the authoritative claims of these ids, and the claims by id; None if no cell has any."""
    return next(iter(await _known_in_all(cells, claim_ids)), None)


async def _known_in_all(cells: Cells, claim_ids: Sequence[str]) -> list[tuple[Cell, dict[str, Claim]]]:
    """Return the cells that have any of these ids, each with its claims by id; the authoritative cell comes first.

    That is the cell with a live claim, else one with a shelved claim, else one whose claim is ending. If several
    qualify, it is one whose claim is on a live host, then the cell that the first id is bound to or was generated
    for, else the cell with the latest claim. Local work comes last: its host chose the id. A release or an audit
    (audit/ids.py) ends the claims of the other cells.
    """
    read = await aio.gather(cell.store.claims.read(claim_ids) for cell in cells)
    # A claim without a host is only a tombstone: the id has moved to another cell.
    held = [{one: claim for one, claim in claims.items() if claim.host} for claims in read]
    found = [(cell, claims) for cell, claims in zip(cells, held, strict=True) if claims]
    if len(found) > 1:
        bound = await next(iter(cells)).store.bindings.cell_of(claim_ids[0])
        live = await on_live_hosts(cells, (claim for _, claims in found for claim in claims.values()))
        found.sort(key=lambda one: _precedence(one[0], one[1], claim_ids[0], bound, live))
    return found


async def on_live_hosts(cells: Cells, claims: Iterable[Claim]) -> set[tuple[str, str]]:
    """Return the cells and hosts of these claims whose lease runs and which have attested to the epoch."""
    hosts = {(claim.cell, claim.host) for claim in claims if claim.host}
    clocks = await cells.clocks()
    found = await aio.gather(cells.named(cell).store.hosts.fields_of([host], LEASE_FIELDS) for cell, host in hosts)
    return {
        (cell, host) for (cell, host), fields in zip(hosts, found, strict=True) if is_live(fields[host], clocks[cell])
    }


async def release_elsewhere(
    cells: Cells,
    released: Claim,
    cell: Cell,
    known: Iterable[tuple[Cell, Claim]] | None = None,
    *,
    shelved: bool = False,
) -> None:
    """Release the claims with a released one's id in all cells but `cell`, and keep hosts from restoring such ones.

    `known` are the claims with this id, if the caller has just read them. `shelved`: shelved claims are released
    too. Hosts always stop the work first, even if the caller forced the release in `cell`. After a wipe, an id may
    have claims in several cells until an audit finds them (audit/ids.py). Claims for local work are skipped: their
    hosts run that work regardless of the store. Claims of other projects are too: who released this one owns none.
    """
    if len(cells) == 1:
        return
    claim_id = released.claim_id
    if known is None:
        known = [(one, claims[claim_id]) for one, claims in await _known_in_all(cells, [claim_id])]
    found = {one: claim for one, claim in known if one is not cell}
    # An id generated for this cell can be in another cell only if its caller got no reply and sent the id again.
    unknown = [] if made_for(cell.name, claim_id) else [one for one in cells if one is not cell and one not in found]
    for other in await void_unknown(claim_id, unknown):
        if claim := (await other.store.claims.read([claim_id])).get(claim_id):
            found[other] = claim
    for other, claim in found.items():
        is_same_owner = claim.project == released.project and not claim.is_local
        if is_same_owner and _how_ended(claim) <= (_SHELVED if shelved else _LIVE):
            answer = await other.store.claims.release(claim.host, claim_id, objects=counted_by(claim))
            if answer.outcome is Outcome.UNKNOWN:  # the cell was wiped after the claim was read
                await void_unknown(claim_id, [other])
            elif answer.facts[0]:
                other.released.note(claim_id, answer)


async def void_unknown(claim_id: str, cells: Iterable[Cell]) -> list[Cell]:
    """Void an id in these cells, so that no host can restore its claim. Returns the cells that have such a claim.

    Existing claims do not change. In a cell whose hosts have all attested, nothing is written. See void.lua.
    """
    asked = list(cells)
    answers = await aio.gather(cell.store.claims.void(claim_id, "", if_unattested=True) for cell in asked)
    having = list[Cell]()
    for cell, answer in zip(asked, answers, strict=True):
        if answer.outcome is Outcome.CONFLICT:
            having.append(cell)
        elif answer.outcome is Outcome.OK:
            cell.released.note(claim_id, answer)
    return having


def _precedence(
    cell: Cell, claims: Mapping[str, Claim], first_id: str, bound: str, live: Container[tuple[str, str]]
) -> tuple[bool, int, bool, bool, int]:
    """Return the sort key of a cell among cells that have claims with the same ids; the authoritative one is lowest.

    `live`: the cells and hosts whose hosts are live.
    """
    last_ms = max(one.claimed_at_ms or 0 for one in claims.values())
    is_elsewhere = cell.name != bound and not made_for(cell.name, first_id)
    is_local = all(one.is_local for one in claims.values())
    is_away = all((cell.name, one.host) not in live for one in claims.values() if one.is_live)
    return is_local, min(map(_how_ended, claims.values())), is_away, is_elsewhere, -last_ms


def _how_ended(claim: Claim) -> int:
    is_ended = claim.state is ClaimStatus.ENDED
    is_shelved = (claim.end_reason if is_ended else claim.closed_reason) is EndReason.SHELVED
    return _LIVE if claim.is_live else _SHELVED if is_shelved else _ENDED if is_ended else _ENDING


def no_such_claim(claim_id: str) -> NotFound:
    """Return the error for a claim that no cell knows."""
    why = "it never existed, or ended too long ago to be remembered"
    return NotFound(f"there is no claim {claim_id!r}: {why}", NotFoundFacts(claim_id=claim_id))
