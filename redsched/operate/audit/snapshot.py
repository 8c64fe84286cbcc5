"""Read a cell for an audit: its hosts with their claims, and all other objects.

Claims are streamed: of a million, only the states are kept, and the few claims that other objects refer to.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from redsched import progress
from redsched.model import LEASED, Claim, ClaimStatus, EndReason, GangOnExit
from redsched.pacing import Spread, in_order, paced
from redsched.store.cell import CellStore
from redsched.store.codec.claim_fields import decision_name, texts_of
from redsched.store.codec.fields import claim_from, placement_fields
from redsched.store.codec.replies import AuditedHost
from redsched.store.commands.base import CHUNK, chunks
from redsched.store.commands.gangs import MEMBER

HOSTS_AT_ONCE = 8

Fields = Mapping[str, str]
OnHost = Callable[[AuditedHost, Mapping[str, int]], Awaitable[None]]
"""Called with each host as it was read, and the deadlines of all claims, which were read before."""
OnClaim = Callable[[str, Fields], None]
"""Called with the id and fields of each claim, those on hosts first; ended ones too."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The parts of a cell that name claims, read before the claims. `keys` has the names of keys by their prefixes."""

    deadlines: Spread[int]
    to_reconcile: Spread[int]
    shelved: Spread[bool]
    keys: Mapping[str, Spread[bool]]
    gangs: Mapping[str, Fields]
    listed: Collection[str]
    """The names in the set of hosts."""


class AuditSnapshot:
    """The findings of reading a cell, object after object."""

    def __init__(self, cell: str, marks: Marks) -> None:
        self.cell, self.marks = cell, marks
        self.present: set[str] = set()
        """The names of the existing hosts."""
        self.states = Spread[str]()
        """The states of all claims at their main placement, ended claims included, by id."""
        self.leased = Spread[bool]()
        """Claims with a lease on a placement other than the main one."""
        self.unlisted: dict[str, dict[str, str]] = {}
        """By host, the claims with a placement there that are missing from the host's set; values: placement states."""
        self.without_expiry = Spread[str]()
        """Ended claims without an expiry, and why they ended."""
        self.shelved = Spread[str]()
        """The existing claims in the set `shelved`: '' or, if wrongly listed, their state."""
        self.unfinished = Spread[bool]()
        """Claims that a scheduler has yet to reconcile, so that they must be listed in `reconcile`."""
        self.gangs_to_reconcile: set[str] = set()
        """The gangs of claims that are listed in `reconcile`."""
        self.accepted_on: set[str] = set()
        """The hosts that have accepted a placement that still exists."""
        self.texts = Spread[bool]()
        """The names of the texts that live and shelved claims refer to."""
        self.gangs: Mapping[str, Fields] = {}
        """The objects that did not change while claims were read."""

    def has_not_ended(self, claim_id: str) -> bool:
        """Return whether the claim exists and has not ended."""
        return self.states.get(claim_id, ClaimStatus.ENDED) != ClaimStatus.ENDED

    def note(self, claim_id: str, fields: Fields, on: str | None = None) -> None:
        """Record what the audit needs of a claim. `on` is the host in whose set it was found, if any."""
        state = fields.get("state", ClaimStatus.ENDED)
        self.states[claim_id] = _STATES.get(state, state)
        is_shelved = claim_id in self.marks.shelved
        if is_shelved:
            self.shelved[claim_id] = "" if _is_shelved(fields) else state
        if state != ClaimStatus.ENDED or is_shelved:
            for text in texts_of(claim_id, fields):
                self.texts[text] = True
        if fields.get("gang") and claim_id in self.marks.to_reconcile:
            self.gangs_to_reconcile.add(fields["gang"])
        if _may_be_unfinished(fields) and is_unfinished(claim_from(self.cell, claim_id, fields)):
            self.unfinished[claim_id] = True
        for placement in placement_fields(fields):
            self._note_placement(claim_id, placement, on)

    def _note_placement(self, claim_id: str, placement: Fields, on: str | None) -> None:
        state, host = placement["state"], placement.get("host", "")
        self.texts[decision_name(placement)] = True
        if host != on:
            self.unlisted.setdefault(host, {})[claim_id] = state
        if state != ClaimStatus.CLAIMED:
            self.accepted_on.add(host)
        if state in LEASED and self.states[claim_id] not in LEASED:
            self.leased[claim_id] = True

    def note_set(self, host: str, ids: Collection[str]) -> None:
        """Record the claim ids in a host's set, after its claims were noted."""
        unlisted = self.unlisted.get(host, {})
        for claim_id in unlisted.keys() & ids:
            del unlisted[claim_id]

    async def free_in_slices(self) -> None:
        """Free what grows with the number of claims, in slices."""
        marks = self.marks
        large: tuple[Spread[Any], ...] = (
            self.states,
            self.without_expiry,
            self.shelved,
            self.unfinished,
            self.leased,
            self.texts,
        )
        for one in (*large, marks.deadlines, marks.to_reconcile, marks.shelved, *marks.keys.values()):
            await one.free_in_slices()


_STATES = {state.value: state.value for state in ClaimStatus}
"""One shared string for each state, instead of a million copies."""


def _is_shelved(fields: Fields) -> bool:
    """Return whether a claim is shelved, or is being shelved."""
    shelving = fields.get("state") == ClaimStatus.ENDED or fields.get("closed_reason") == EndReason.SHELVED
    return shelving and EndReason.SHELVED in (fields.get("end_reason"), fields.get("closed_reason"))


def _may_be_unfinished(fields: Fields) -> bool:
    """Return False for a claim with one placement that was never closed, which is the common case."""
    fixed = ("closed", "retry_root", "gang_exit")
    return any(name in fields for name in fixed) or any(name.startswith("placement.") for name in fields)


def is_unfinished(claim: Claim) -> bool:
    """Return whether a claim needs reconciliation by a scheduler, by the rules of include/claim/due.lua."""
    if claim.state is ClaimStatus.PENDING or claim.gang_exit is GangOnExit.RELEASE:
        return True
    return any(one.state is not ClaimStatus.ENDING and claim.is_doomed(one) for one in claim.placements)


async def _no_host(_: AuditedHost, __: Mapping[str, int]) -> None:
    pass


async def read_cell(store: CellStore, on_host: OnHost = _no_host, on_claim: OnClaim | None = None) -> AuditSnapshot:
    """Read a cell, each object after those that name it. Call `free_in_slices` on the result when done."""
    seen = AuditSnapshot(store.name, await _read_marks(store))
    await _read_hosts(store, seen, on_host, on_claim)
    await _read_unheld(store, seen, on_claim)
    gangs = seen.marks.gangs
    after = await store.audit.gang_hashes(list(gangs))
    seen.gangs = {gang: fields for gang, fields in gangs.items() if after.get(gang) == fields}
    return seen


def members_of(gang: Fields) -> list[str]:
    """Return the ids of the claims in a gang's hash."""
    return sorted(name.removeprefix(MEMBER) for name in gang if name.startswith(MEMBER))


async def _read_marks(store: CellStore) -> Marks:
    deadlines, to_reconcile, shelved = (
        await store.due.deadlines(),
        await store.due.reconcile_times(),
        await store.claims.shelved_ids(),
    )
    keys = await store.audit.key_names()
    gangs = await store.audit.gang_hashes(list(keys.get("gang", ())))
    return Marks(deadlines, to_reconcile, shelved, keys, gangs, await store.hosts.names())


async def _read_hosts(store: CellStore, seen: AuditSnapshot, on_host: OnHost, on_claim: OnClaim | None) -> None:
    """Read all hosts that have a key, are listed, or have only a set of claims (these without fields)."""
    keys = seen.marks.keys
    names = await in_order({*seen.marks.listed, *keys.get("host", ()), *keys.get("claims", ())})
    for number, batch in enumerate(chunks(names, HOSTS_AT_ONCE)):
        progress.report("hosts", number * HOSTS_AT_ONCE, len(names))
        async for host in store.audit.hosts(batch):
            if host.fields:
                seen.present.add(host.name)
            async for claim_id, fields in paced(host.claims.items()):
                # A claim that a manual edit put into a second set is still one claim.
                if fields and claim_id not in seen.states:
                    seen.note(claim_id, fields, host.name)
                    if on_claim:
                        on_claim(claim_id, fields)
            seen.note_set(host.name, host.ids)
            await on_host(host, seen.marks.deadlines)


async def _read_unheld(store: CellStore, seen: AuditSnapshot, on_claim: OnClaim | None) -> None:
    """Read the claims that are in no host's set, in pages."""
    in_gangs = (one for gang in seen.marks.gangs.values() for one in members_of(gang))
    named = chain(seen.marks.keys.get("claim", ()), in_gangs, seen.marks.to_reconcile)
    page: set[str] = set()
    async for claim_id in paced(named):
        if claim_id not in seen.states:
            page.add(claim_id)
        if len(page) == CHUNK:
            await _note_unheld(store, seen, sorted(page), on_claim)
            page.clear()
    await _note_unheld(store, seen, sorted(page), on_claim)


async def _note_unheld(store: CellStore, seen: AuditSnapshot, ids: list[str], on_claim: OnClaim | None) -> None:
    claims = await store.audit.claim_hashes(ids)
    ended = [claim_id for claim_id, fields in claims.items() if fields.get("state") == ClaimStatus.ENDED]
    lasting = await store.audit.without_expiry(ended)
    seen.without_expiry.update((claim_id, claims[claim_id].get("end_reason", "")) for claim_id in lasting)
    async for claim_id, fields in paced(claims.items()):
        seen.note(claim_id, fields)
        if on_claim:
            on_claim(claim_id, fields)
