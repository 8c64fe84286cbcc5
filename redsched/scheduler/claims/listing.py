"""List the claims that match a filter, in order, and add reasons to claims. Reads the store, not memory."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from redsched.model import (
    ENDING_OR_ENDED,
    STOP_FAILED,
    Claim,
    ClaimStatus,
    EndReason,
    HostCondition,
    Reason,
    accepts,
)
from redsched.model.filters import ClaimFilter
from redsched.pacing import in_order, paced
from redsched.scheduler.cells import Cell
from redsched.scheduler.claims.cursor import Place
from redsched.scheduler.hosts.fields import LEASE_FIELDS, condition_from
from redsched.store.codec.fields import DRAINING_FIELDS, draining_of
from redsched.store.commands.base import CLAIMS_AT_ONCE, chunks
from redsched.store.commands.claims import HOSTS_AT_ONCE

_EXPLAINED = (EndReason.EXPIRED, EndReason.FAILED, EndReason.WORK_ENDED, EndReason.MAX_RUNTIME)
_GIVEN_BACK = (EndReason.RELEASED, ClaimStatus.ENDING, STOP_FAILED)
"""Reasons of these changes explain any end: why it was released, for example by a drain, or could not be stopped."""


async def walk_claims(
    cells: "list[Cell]", claim_filter: ClaimFilter, after: Place
) -> AsyncGenerator[tuple[Place, Claim], None]:
    """Yield the matching claims after a position, in order. Reads at most one batch ahead."""
    if not after[0]:
        async for claim in _on_no_host(cells, claim_filter, after[1]):
            if claim_filter.matches(claim):
                yield ("", claim.claim_id), claim
    hosts = _hosts(cells, claim_filter, after[0]) if claim_filter.includes_placed else []
    for some in chunks(hosts, HOSTS_AT_ONCE):
        places = await _places(some, after)
        for batch in chunks(places, CLAIMS_AT_ONCE):
            claims = await _read_at(batch, only_main=not claim_filter.host)
            await asyncio.sleep(0)  # reading them, and what is done with them, are a turn of the loop each
            for claim in claims:
                if claim_filter.matches(claim):
                    yield (claim.host, claim.claim_id), claim
            await asyncio.sleep(0)


async def _on_no_host(cells: "list[Cell]", claim_filter: ClaimFilter, after_id: str) -> AsyncIterator[Claim]:
    """Yield pending claims without a placement and shelved claims, if the filter includes them, sorted by id."""
    listed = [(cell, await _ids_on_no_host(cell, claim_filter)) for cell in cells]
    async for claim in _by_id(listed, after_id):
        shelved = claim_filter.includes_shelved and claim.is_shelved
        if shelved or (claim.state is ClaimStatus.PENDING and not claim.placements):
            yield claim


async def _ids_on_no_host(cell: Cell, claim_filter: ClaimFilter) -> set[str]:
    """Return a superset of the ids that `_on_no_host` yields. Each pending claim is listed in `reconcile`."""
    listed: list[Collection[str]] = [await cell.store.due.reconcile_times()] if claim_filter.includes_unplaced else []
    listed += [await cell.store.claims.shelved_ids()] if claim_filter.includes_shelved else []
    return {one for ids in listed async for one in paced(ids)}


async def _by_id(listed: "Sequence[tuple[Cell, Collection[str]]]", after_id: str) -> AsyncIterator[Claim]:
    """Yield the claims with these ids in order; an id listed by several cells yields a claim for each."""
    ids = {one for _, some in listed async for one in paced(some) if one > after_id}
    for batch in chunks(await in_order(ids), CLAIMS_AT_ONCE):
        found = [await cell.store.claims.read(one for one in batch if one in some) for cell, some in listed]
        for claim_id in batch:
            for claims in found:
                if claim_id in claims:
                    yield claims[claim_id]


def _hosts(cells: "Iterable[Cell]", claim_filter: ClaimFilter, since: str) -> "list[tuple[Cell, str]]":
    hosts = [
        (cell, name)
        for cell in cells
        for name in cell.updater.columns.names_where(zone=claim_filter.zone)
        if name >= since and accepts(claim_filter.host, name)
    ]
    return sorted(hosts, key=lambda one: one[1])


async def _places(hosts: "Sequence[tuple[Cell, str]]", after: Place) -> "list[tuple[Cell, str, str]]":
    """Return the cell, host and id of each claim on these hosts after a position, in order."""
    ids: dict[str, set[str]] = {}
    for cell in dict.fromkeys(cell for cell, _ in hosts):
        names = [name for one, name in hosts if one is cell]
        ids.update(zip(names, await cell.store.hosts.claim_ids_of(names), strict=True))
    return [
        (cell, host, claim_id)
        for cell, host in hosts
        async for claim_id in paced(await in_order(ids[host]))
        if (host, claim_id) > after
    ]


async def _read_at(places: "Sequence[tuple[Cell, str, str]]", only_main: bool) -> "list[Claim]":
    """Return each claim as seen at its host; with `only_main`, only those whose main placement is there."""
    claims: dict[str, Claim] = {}
    for cell in dict.fromkeys(cell for cell, _, _ in places):
        claims |= await cell.store.claims.read(claim_id for one, _, claim_id in places if one is cell)
    found = ((host, claims[claim_id]) for _, host, claim_id in places if claim_id in claims)
    if only_main:
        return [claim for host, claim in found if claim.placements and claim.host == host]
    return [view for host, claim in found if (view := claim.on(host))]


async def with_reasons(cell: Cell, claims: "Sequence[Claim]") -> "list[Claim]":
    """Return the claims, each with its stored reason if that still applies."""
    failed, stuck = await cell.store.claims.failures(one.claim_id for one in claims)
    return [_with_reason(one, failed.get(one.claim_id), stuck.get(one.claim_id)) for one in claims]


async def with_host_conditions(cell: Cell, claims: "Sequence[Claim]") -> "list[Claim]":
    """Return the claims, each with the condition of its host: an active claim on a host that is down may not run.

    Likewise how it leaves the host, if that is being emptied.
    """
    names = list(dict.fromkeys(one.host for one in claims if one.placements))
    found = await cell.store.hosts.fields_of(names, (*LEASE_FIELDS, *DRAINING_FIELDS))
    epoch, now_ms = cell.updater.epoch, cell.updater.now_ms()
    known = {name: _OfHost.read(fields, epoch, now_ms) for name, fields in found.items() if fields}
    return [known[one.host].on(one) if one.placements and one.host in known else one for one in claims]


@dataclass(frozen=True, slots=True)
class _OfHost:
    """What a claim shows of its host."""

    condition: HostCondition
    down_since_ms: int | None
    leaving: str

    @classmethod
    def read(cls, fields: Mapping[str, str], epoch: str, now_ms: int) -> "_OfHost":
        how = draining_of(fields, now_ms, epoch)
        return cls(*condition_from(fields, epoch, now_ms), how if how in ("move", "evacuate") else "")

    def on(self, claim: Claim) -> Claim:
        return replace(
            claim, host_condition=self.condition, host_down_since_ms=self.down_since_ms, leaving=self.leaving
        )


def _with_reason(claim: Claim, failure: Reason | None, stuck: Reason | None) -> Claim:
    failure, stuck = (one if _concerns(claim, one) else None for one in (failure, stuck))
    reason = failure if stuck is None else stuck.after(failure)
    return claim if reason is None else replace(claim, reason=reason)


def _concerns(claim: Claim, reason: Reason | None) -> bool:
    """Return whether a reason applies to this claim; if the claim has ended or is ending, to that end.

    A reason older than the claim belongs to an earlier claim with the same id.
    """
    if reason is None or reason.at_ms < (claim.claimed_at_ms or 0):
        return False
    return claim.state not in ENDING_OR_ENDED or (
        reason.token == claim.token and _explains(claim.end_reason, reason.op)
    )


def _explains(end_reason: EndReason | None, op: str) -> bool:
    """Return whether the change `op` explains the claim's end, and is not an earlier failure that it survived."""
    could_not_start = end_reason is EndReason.SHELVED and op in (EndReason.FAILED, EndReason.EXPIRED)
    return end_reason in _EXPLAINED or op in _GIVEN_BACK or could_not_start
