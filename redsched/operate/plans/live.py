"""What a copy of a running cell needs beside its columns: claims, their requests, and gangs that are not active.

Claims are read from the store, and may change meanwhile. So those of hosts whose number of claims differs from that in
the columns are read again.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from redsched import aio
from redsched.cache.columns import Columns
from redsched.decide.plugins.registry import PluginRegistry
from redsched.errors import InvalidRequest, TooHard
from redsched.model import Claim, ClaimStatus, Request
from redsched.model.payload import without_payload
from redsched.operate.backup.archive import Packed
from redsched.operate.plans.cell_copy import CellCopy
from redsched.pacing import paced
from redsched.scheduler.cells import Cell
from redsched.settings import Settings
from redsched.store.codec.claim_fields import request_name
from redsched.store.codec.fields import claim_from
from redsched.store.commands.base import chunks

MAX_CLAIMS = 100_000
"""The most claims that one plan reads from the store: they take a few KB each in the process that serves others."""
MAX_LEAVING = 5000
"""The most claims on the hosts of a plan that names each of them: its answer is rendered by the same process."""
TRIES = 3


@dataclass(slots=True)
class Known:
    """The claims of a plan, the texts of their requests without payloads by digest, and gangs that are not active yet.

    Claims are kept as texts, and become objects in the fork: the garbage collector would traverse them here. `places`
    has their hosts, `counts` the number of claims on each host.
    """

    hosts: Sequence[str] = ()
    """The hosts of which all claims were read."""
    claims: Packed = field(default_factory=Packed)
    texts: dict[str, str] = field(default_factory=dict)
    unready: set[str] = field(default_factory=set)
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    digests: set[str] = field(default_factory=set)
    gangs: set[str] = field(default_factory=set)
    related: set[str] = field(default_factory=set)
    """Claims that these refer to: members of their gangs, and those that hints of their requests name."""

    def put(self, claim: Claim) -> None:
        """Add a claim, or replace it."""
        self.forget(claim.claim_id)
        self.claims.put(claim.claim_id, claim.raw)
        self.places[claim.claim_id] = claim.hosts
        self.counts.update(claim.hosts)
        self.related.update(*claim.gang_members.values())
        if claim.digest:
            self.digests.add(claim.digest)
        if claim.gang:
            self.gangs.add(claim.gang)

    def forget(self, claim_id: str) -> None:
        """Remove a claim; do nothing if it is unknown."""
        hosts = self.places.pop(claim_id, None)
        if hosts is not None:
            self.claims.drop(claim_id)
            self.counts.subtract(hosts)

    def copy(self, cell: Cell, settings: Settings, plugins: PluginRegistry) -> CellCopy:
        """Return a copy of a cell as its columns are now. It changes them: call it in a fork."""
        claims = {claim_id: claim_from(cell.name, claim_id, fields) for claim_id, fields in self.claims.items()}
        return CellCopy(cell.name, cell.updater.columns, settings, plugins, claims, self.texts, self.unready)

    def changed(self, columns: Columns) -> list[str]:
        """Return the hosts that have another number of claims now than were read."""
        rows = columns.rows_of(self.hosts)
        now = np.where(rows >= 0, columns.claims[rows], 0).tolist()
        return [host for host, number in zip(self.hosts, now, strict=True) if self.counts[host] != number]


async def read_known(cell: Cell, hosts: Collection[str], waiting: bool = False, most: int = MAX_CLAIMS) -> Known:
    """Read the claims on these hosts, and with `waiting` those that wait for a place; and what these refer to.

    Raises TooHard (there are more than `most` on the hosts), Unavailable.
    """
    known = Known(sorted(hosts))
    missing: Sequence[str] = known.hosts
    for _ in range(TRIES):
        await _read_hosts(cell, known, missing, most)
        missing = await cell.read_at_head(lambda: known.changed(cell.updater.columns))
        if not missing:
            break
    if waiting:
        await _read(cell, known, await cell.store.due.reconcile_times(), most, only_pending=True)
    await _read_texts(cell, known)
    await _read(cell, known, known.related - known.places.keys(), most)
    for some in chunks(sorted(known.gangs)):
        members = await aio.gather(cell.store.gangs.members(gang) for gang in some)
        known.unready.update(gang for gang, found in zip(some, members, strict=True) if found)
    return known


async def _read_hosts(cell: Cell, known: Known, hosts: Sequence[str], most: int) -> None:
    again = set(hosts)
    old = [claim_id async for claim_id, there in paced(known.places.items()) if not again.isdisjoint(there)]
    for claim_id in old:
        known.forget(claim_id)
    async for page in cell.store.claims.unended_on(hosts):
        for one in page:
            known.put(one)
        _refuse_too_many(known, most)


async def _read(cell: Cell, known: Known, claim_ids: Iterable[str], most: int, only_pending: bool = False) -> None:
    for batch in chunks(sorted(claim_ids)):
        for one in (await cell.store.claims.read(batch)).values():
            if one.state is ClaimStatus.PENDING or not (only_pending or one.state is ClaimStatus.ENDED):
                known.put(one)
        _refuse_too_many(known, max(most, MAX_CLAIMS))


async def _read_texts(cell: Cell, known: Known) -> None:
    for some in chunks(sorted(known.digests)):
        texts = await cell.store.texts.read([request_name(one) for one in some])
        for one in some:
            text = texts.get(request_name(one))
            if text is not None:
                known.texts[one] = text = without_payload(text)
                if '"same_host"' in text or '"different_host"' in text:  # few have these, and parsing takes long
                    known.related |= _hinted(text)


def _hinted(text: str) -> set[str]:
    try:
        request = Request.from_canonical(text)
    except InvalidRequest:
        return set()
    parts = (request, *(one.request for one in request.members))
    return {claim_id for one in parts for claim_id in one.hints.same_host | one.hints.different_host}


def _refuse_too_many(known: Known, most: int) -> None:
    if len(known.places) > most:
        raise TooHard(
            f"the plan needs more than {most:,} claims: plan for fewer hosts, or on an export with "
            "`redsched plan --from`"
        )
