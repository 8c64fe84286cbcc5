"""What hosts keep for requests that wait: for whom it counts as free, and which host a request should wait for.

A request that fits nowhere should wait for the host that fewest claims have to leave.
Nobody knows how long most claims will stay. Of hosts that equally many such claims have to leave, the one is best whose
other claims, which state how long they run (`max_runtime_s`), end first.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.overlay import Overlay
from redsched.decide.profile import RequestProfile
from redsched.decide.scoring.demand import demanded_room
from redsched.decide.work_limit import check_work
from redsched.model import Amounts, Claim, Request

MAX_CLAIMS = 200
"""Hosts with more claims are not considered: each claim costs a test."""
SHARED = 16
"""How many of the hosts that work of limited runtime may use are considered in one decision."""


@contextmanager
def usable(columns: Columns, request: Request, now_ms: int, reservation: str = "") -> Iterator[None]:
    """Inside the context, what hosts keep counts as free in the columns as far as a request may use it at `now_ms`.

    That is what is kept under its own reservation, and for requests that wait until its work has ended. Nothing inside
    may let other tasks run.
    """
    if not len(columns.reserved) or not (reservation or request.max_runtime_s):
        yield
        return
    rows = dict(columns.reserved.of(reservation)) if reservation else {}
    if request.max_runtime_s:
        others = list(columns.reserved.until(now_ms + request.max_runtime_s * 1000))
        rows |= random.sample(others, min(SHARED, len(others)))
    with columns.without_reserved(rows.items()):
        yield


@dataclass(frozen=True, slots=True)
class Wait:
    """What a request waits for on a host: that these claims leave. Then it takes `amounts` there.

    `unlimited` is the number of those that do not state how long they run; the others end by `from_ms` (Unix, ms).
    """

    host: str
    amounts: Amounts
    leaving: tuple[str, ...]
    unlimited: int
    from_ms: int

    def rank(self, is_reserved: bool) -> tuple[int, int, int, str]:
        """Return the sort key; lower is better. Another host must be clearly better than one that is reserved."""
        return self.unlimited - is_reserved, self.from_ms, len(self.leaving), self.host


def worth_waiting_for(profile: RequestProfile, most: int, own: str = "") -> list[str]:
    """Return hosts that would take one place of a request if they were empty: up to `most` with most room, and as many
    with the fewest claims, such as one of the same size.

    `own`: the request's reservation. Hosts that are reserved for it come in addition; those of others are left out.
    """
    columns, eligible = profile.columns, profile.fitting.eligible.copy()
    eligible[columns.reserved.of_others(own)] = False
    rows = np.flatnonzero(eligible)
    lacking = np.zeros(len(rows))
    for amount, capacity, free in demanded_room(columns, profile.request, rows):
        check_work("looking for hosts to wait for")
        lacking = np.where(capacity >= amount, lacking + np.maximum(0, amount - free) / np.maximum(1, amount), np.inf)
    possible = np.isfinite(lacking) & (columns.claims[rows] <= MAX_CLAIMS)
    rows, lacking = rows[possible], lacking[possible]
    by_room = rows[np.lexsort((columns.order[rows], columns.claims[rows], lacking))].tolist()
    by_claims = rows[np.lexsort((columns.order[rows], lacking, columns.claims[rows]))].tolist()
    reserved = {row for row, _ in columns.reserved.of(own)} if own else set()
    chosen = [*by_room[:most], *by_claims[:most], *(row for row in by_room if row in reserved)]
    return [columns.name(row) for row in dict.fromkeys(chosen)]


def wait_for(profile: RequestProfile, host: str, claims: Sequence[Claim], now_ms: int) -> Wait | None:
    """Return what has to happen for a host to take one place; None if it would not take it even without claims.

    `claims` are all claims on the host. As few as possible have to leave, and rather those that end soon.
    """
    columns = profile.columns
    row = columns.row(host)
    if row is None or len(claims) > MAX_CLAIMS:
        return None
    kept = columns.reserved.get(row)
    with Overlay(columns) as overlay, columns.without_reserved([(row, kept)] if kept is not None else []):
        leaving = _leaving(profile, row, claims, now_ms, overlay)
        if leaving is None:
            return None
        amounts = profile.pools.now(row)[0]
    ends = [one.runtime_deadline_ms for one in leaving]
    known = [one for one in ends if one is not None]
    return Wait(host, amounts, tuple(one.claim_id for one in leaving), len(ends) - len(known), max([now_ms, *known]))


def in_the_way(profile: RequestProfile, row: int, claims: Sequence[Claim], now_ms: int) -> list[Claim] | None:
    """Return the claims that `wait_for` would wait for, if what the host keeps for another request stays kept."""
    with Overlay(profile.columns) as overlay:
        return _leaving(profile, row, claims, now_ms, overlay)


def _leaving(
    profile: RequestProfile, row: int, claims: Sequence[Claim], now_ms: int, overlay: Overlay
) -> list[Claim] | None:
    """Return the claims that have to leave, after ending them in the overlay; None if their end does not help."""
    host = profile.columns.name(row)
    here = [view for claim in claims for view in (claim.on(host),) if view is not None]
    ended = {claim.claim_id: overlay.end(row, claim) for claim in here}
    if not _takes(profile, row):
        return None
    leaving = list[Claim]()
    for claim in sorted(here, key=lambda one: _stay_first(one, now_ms)):
        check_work("looking for claims that have to leave")
        overlay.give_back(ended[claim.claim_id])
        if not _takes(profile, row):
            overlay.end(row, claim)
            leaving.append(claim)
    return leaving


def _takes(profile: RequestProfile, row: int) -> bool:
    """Return whether a host takes a request, while claims are left out. Claims change none of the host's own rules."""
    return profile.fitting.passes_all_now(row) and bool(profile.pools.now(row))


def _stay_first(claim: Claim, now_ms: int) -> tuple[int, int, str]:
    """Return the sort key by which the claims that are worst to wait for come first, of these the smallest."""
    until_ms = claim.runtime_deadline_ms
    if until_ms is None:
        return 0, sum(claim.slots.values()), claim.claim_id
    return 1, -max(until_ms, now_ms), claim.claim_id
