"""Auditing hosts: each with the claims on it, read at one instant. Invariants 1, 2 and 5."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from redsched.model import LEASED, ClaimStatus
from redsched.names import SHARED_POOL, whole
from redsched.scheduler.views import Mend, Problem
from redsched.store import AuditedHost, Clock
from redsched.store.fields import AMOUNT, WRITTEN_OFF, placement_fields

OVERDUE_MS = 15_000
"""How long after its deadline a claim may wait for a sweep before that is a leak."""

SHOWN = 40

NOT_HEARD = "left alone until the host has attested, which works it out anew; or write it off with `redsched lost`"
UNREADABLE = "an amount of a claim is no whole number: release that claim with --force"
TOO_MUCH = "nothing of what is claimed is taken away: release claims, or report the capacity that there is"


def host_problems(cell: str, host: AuditedHost, clock: Clock) -> Iterator[Problem]:
    """What a host says that its claims do not."""
    heard = is_heard(host, clock)
    sums = _sums(host)
    for slot in _slots(host):
        claimed, capacity = _amount(host.fields, f"claimed.{slot}"), _amount(host.fields, f"capacity.{slot}")
        thing, says = f"{host.name} {slot}", host.fields.get(f"claimed.{slot}", "0")[:SHOWN]
        if claimed > capacity and f"over.{slot}" not in host.fields:
            # Where its sum is wrong too, mending that says whether it really is.
            mend = _mend(heard) if claimed != sums[slot] else None
            yield Problem(1, cell, thing, "claimed", says, f"at most {capacity}", mend, host.name, TOO_MUCH)
        if claimed != sums[slot]:
            advice = _advice(heard, readable=sums[slot] >= 0)
            should = f"{sums[slot]}" if sums[slot] >= 0 else "readable"
            yield Problem(2, cell, thing, "claimed", says, should, _mend(heard), host.name, advice)
    here = [one for _, one in _placed_here(host)]
    leased = sum(one["state"] in LEASED for one in here)
    for name, count in (("claims", len(here)), ("starting", leased)):
        if _amount(host.fields, name) != count:
            says, thing = host.fields.get(name, "0")[:SHOWN], f"{host.name} {name}"
            yield Problem(2, cell, thing, "count", says, f"{count}", _mend(heard), host.name, _advice(heard))
    yield from _wrong_ids(cell, host, heard)


def lease_problems(cell: str, host: AuditedHost, deadlines: Mapping[str, int], clock: Clock) -> Iterator[Problem]:
    """Leases that do not end. Of a host that was heard in this epoch: on others nothing may be expired."""
    for claim_id, fields in _placed_here(host) if is_heard(host, clock) else ():
        if fields["state"] not in LEASED:
            continue
        deadline = deadlines.get(claim_id)
        if deadline is None:
            yield Problem(5, cell, claim_id, "deadline", "none", "that of its lease", Mend.HOST, host.name)
        elif deadline < clock.now_ms - OVERDUE_MS:
            late = f"{(clock.now_ms - deadline) // 1000} s ago"
            advice = "no scheduler has ended it: look at the log of one, and whether any runs"
            yield Problem(5, cell, claim_id, "deadline", late, "ended by now", None, host.name, advice)


def unheard_endings(cell: str, host: AuditedHost, clock: Clock) -> Iterator[Problem]:
    """Claims that wait for the word of a host that was written off. Whoever wrote it off, or empties it, ends them."""
    evacuated = host.fields.get("leaving") == "evacuate"
    if host.fields.get("epoch") != WRITTEN_OFF or not (evacuated or is_heard(host, clock)):
        return
    for claim_id, fields in _placed_here(host):
        if fields["state"] == ClaimStatus.ENDING:
            yield Problem(5, cell, claim_id, "claim", f"ending on {host.name}, lost", "ended", Mend.ENDING, claim_id)


def is_heard(host: AuditedHost, clock: Clock) -> bool:
    """Whether it has attested to the present epoch, or was written off in it."""
    return clock.epoch in (host.fields.get("epoch"), host.fields.get("written_off"))


def over_by_rights(host: AuditedHost) -> bool:
    """Over by its own word (`over.<slot>`: it shrank, or attested more than it has), or by external usage."""
    return any(
        f"over.{slot}" in host.fields
        or _amount(host.fields, f"claimed.{slot}")
        <= _amount(host.fields, f"capacity.{slot}")
        < _amount(host.fields, f"claimed.{slot}") + _amount(host.fields, f"external.{slot}")
        for slot in _slots(host)
    )


def _wrong_ids(cell: str, host: AuditedHost, heard: bool) -> Iterator[Problem]:
    here = {claim_id for claim_id, _ in _placed_here(host)}
    for claim_id in sorted(host.ids):
        fields = host.claims[claim_id]
        if claim_id not in here:
            found = f"{fields.get('state', 'unknown')} on {fields.get('host') or 'no host'}"
            should = f"not among the claims of {host.name}"
            yield Problem(2, cell, claim_id, "claim", found, should, _mend(heard), host.name, _advice(heard))


def _placed_here(host: AuditedHost) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The placements on the host, and the ids of their claims."""
    for claim_id, fields in host.claims.items():
        for placement in placement_fields(fields):
            if placement.get("host") == host.name:
                yield claim_id, placement


def _mend(heard: bool) -> Mend | None:
    return Mend.HOST if heard else None


def _advice(heard: bool, readable: bool = True) -> str:
    if not readable:
        return UNREADABLE
    return "" if heard else NOT_HEARD


def _amount(fields: Mapping[str, str], name: str) -> int:
    """-1 for what somebody has made unreadable, so that it equals no sum."""
    return whole(fields.get(name, "0"), -1)


def _slots(host: AuditedHost) -> Sequence[str]:
    kinds = ("claimed.", "capacity.")
    return sorted({name.partition(".")[2] for name in host.fields if name.startswith(kinds)} | set(_sums(host)))


def _sums(host: AuditedHost) -> Counter[str]:
    """What its claims hold of each slot; -1 where one of them has been made unreadable."""
    sums: Counter[str] = Counter()
    for _, fields in _placed_here(host):
        for name in fields:
            slot = name.removeprefix(AMOUNT)
            if slot != name and not slot.startswith(SHARED_POOL):
                amount = _amount(fields, name)
                sums[slot] = -1 if amount < 0 or sums[slot] < 0 else sums[slot] + amount
    return sums
