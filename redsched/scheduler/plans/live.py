"""What a copy of a running cell needs beside its columns: claims, their requests, and gangs that are not active.

Claims are read from the store, and may change meanwhile. So those of hosts whose number of claims differs from that in
the columns are read again.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.plugins.registry import PluginRegistry
from redsched.errors import InvalidRequest, TooHard
from redsched.model import Claim, ClaimStatus, Request
from redsched.scheduler.cells import Cell
from redsched.scheduler.plans.cell_copy import CellCopy
from redsched.settings import Settings
from redsched.store.codec.claim_fields import request_name
from redsched.store.commands.base import chunks

MAX_CLAIMS = 100_000
"""The most claims that one plan reads from the store: they take a few KB each in the process that serves others."""
TRIES = 3
TEXTS_AT_ONCE = 100


@dataclass(slots=True)
class Known:
    """The claims of a plan by id, the texts of their requests by digest, and the gangs that are not active yet."""

    claims: dict[str, Claim] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    unready: set[str] = field(default_factory=set)
    hosts: Sequence[str] = ()
    """The hosts of which all claims were read."""

    def copy(self, cell: Cell, settings: Settings, plugins: PluginRegistry) -> CellCopy:
        """Return a copy of a cell as its columns are now. It changes them: call it in a fork."""
        return CellCopy(cell.name, cell.updater.columns, settings, plugins, self.claims, self.texts, self.unready)

    def changed(self, columns: Columns) -> list[str]:
        """Return the hosts that have another number of claims now than were read."""
        counts = Counter(host for claim in self.claims.values() for host in claim.hosts)
        rows = columns.rows_of(self.hosts)
        now = np.where(rows >= 0, columns.claims[rows], 0).tolist()
        return [host for host, number in zip(self.hosts, now, strict=True) if counts[host] != number]


async def read_known(cell: Cell, hosts: Collection[str], waiting: bool = False) -> Known:
    """Read the claims on these hosts, and with `waiting` those that wait for a place; and what these refer to.

    Raises TooHard (there are more than MAX_CLAIMS), Unavailable.
    """
    known = Known(hosts=sorted(hosts))
    missing: Sequence[str] = known.hosts
    for _ in range(TRIES):
        await _read_hosts(cell, known, missing)
        missing = await cell.read_at_head(lambda: known.changed(cell.updater.columns))
        if not missing:
            break
    if waiting:
        await _read(cell, known, await cell.store.due.reconcile_times(), only_pending=True)
    await _read_texts(cell, known)
    await _read(cell, known, _related(known) - known.claims.keys())
    for gang in sorted({one.gang for one in known.claims.values() if one.gang}):
        if await cell.store.gangs.members(gang):
            known.unready.add(gang)
    return known


async def _read_hosts(cell: Cell, known: Known, hosts: Sequence[str]) -> None:
    fresh = set(hosts)
    for claim_id in [one.id for one in known.claims.values() if fresh & set(one.hosts)]:
        del known.claims[claim_id]
    async for page in cell.store.claims.unended_on(hosts):
        known.claims.update((one.id, one) for one in page)
        _refuse_too_many(known)


async def _read(cell: Cell, known: Known, claim_ids: Iterable[str], only_pending: bool = False) -> None:
    for batch in chunks(sorted(claim_ids)):
        for one in (await cell.store.claims.read(batch)).values():
            if one.state is ClaimStatus.PENDING or not (only_pending or one.state is ClaimStatus.ENDED):
                known.claims[one.id] = one
        _refuse_too_many(known)


async def _read_texts(cell: Cell, known: Known) -> None:
    digests = sorted({one.digest for one in known.claims.values() if one.digest} - known.texts.keys())
    for first in range(0, len(digests), TEXTS_AT_ONCE):
        batch = digests[first : first + TEXTS_AT_ONCE]
        texts = await cell.store.texts.read([request_name(one) for one in batch])
        known.texts.update((one, texts[request_name(one)]) for one in batch if request_name(one) in texts)


def _related(known: Known) -> set[str]:
    """Return the claims that others refer to: members of their gangs, and those that hints of their requests name."""
    ids = {one for claim in known.claims.values() for some in claim.gang_members.values() for one in some}
    for text in known.texts.values():
        if "_host" in text:  # few requests have such hints, and parsing all of them would take long
            ids |= _hinted(text)
    return ids


def _hinted(text: str) -> set[str]:
    try:
        request = Request.from_canonical(text)
    except InvalidRequest:
        return set()
    parts = (request, *(one.request for one in request.members))
    return {claim_id for one in parts for claim_id in one.hints.same_host | one.hints.different_host}


def _refuse_too_many(known: Known) -> None:
    if len(known.claims) > MAX_CLAIMS:
        raise TooHard(
            f"the plan needs more than {MAX_CLAIMS:,} claims: plan for fewer hosts, or on an export with "
            "`redsched plan --from`"
        )
