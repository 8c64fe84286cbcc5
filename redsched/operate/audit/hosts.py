"""Audit hosts, each with its claims, read at one instant. Invariants 1, 2 and 5."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from redsched.model import LEASED, ClaimStatus
from redsched.model.records.audit import Problem, RepairKind
from redsched.model.validation import MAX_AMOUNT, SHARED_POOL, parse_int
from redsched.pacing import paced
from redsched.store.codec.fields import AMOUNT, WRITTEN_OFF, placement_fields
from redsched.store.codec.replies import AuditedHost, Clock

OVERDUE_MS = 15_000
"""The time after its deadline for which a claim may wait for a sweep, before it counts as a leak."""

SHOWN = 40

UNATTESTED = "left alone until the host has attested, which recomputes it; or use `redsched host write-off`"
UNREADABLE = "an amount of a claim is not a whole number: release that claim with --force"
BEYOND_RANGE = "a sum above 2^53-1 cannot be kept: release claims until it is below that"
TOO_MUCH = "nothing of what is claimed is taken away: release claims, or report the capacity that there is"


@dataclass(frozen=True, slots=True)
class Load:
    """A host as it was read, its placements, and their total amounts by slot."""

    host: AuditedHost
    placed: Sequence[tuple[str, Mapping[str, str]]]
    """The claim id and the fields of each placement."""
    sums: Mapping[str, int]
    """By slot; -1 if an amount is unreadable."""


async def load_of(host: AuditedHost) -> Load:
    """Compute the placements on a host, and their sums."""
    placed: list[tuple[str, Mapping[str, str]]] = []
    sums: Counter[str] = Counter()
    async for claim_id, fields in paced(host.claims.items()):
        for placement in placement_fields(fields):
            if placement.get("host") == host.name:
                placed.append((claim_id, placement))
                _add(sums, placement)
    return Load(host, placed, sums)


def _add(sums: Counter[str], placement: Mapping[str, str]) -> None:
    for name in placement:
        slot = name.removeprefix(AMOUNT)
        if slot != name and not slot.startswith(SHARED_POOL):
            amount = _amount(placement, name)
            sums[slot] = -1 if amount < 0 or sums[slot] < 0 else sums[slot] + amount


def host_problems(cell: str, load: Load, clock: Clock) -> Iterator[Problem]:
    """Yield the differences between a host's counters and its claims."""
    host, sums, accounted_for = load.host, load.sums, is_accounted_for(load.host, clock)
    for slot in _slots(load):
        claimed, capacity = _amount(host.fields, f"claimed.{slot}"), _amount(host.fields, f"capacity.{slot}")
        subject, says = f"{host.name} {slot}", host.fields.get(f"claimed.{slot}", "0")[:SHOWN]
        if claimed > capacity and f"over.{slot}" not in host.fields:
            # If its sum is wrong too, repairing that shows whether it really is over capacity.
            repair = _repair(accounted_for) if claimed != sums.get(slot, 0) else None
            yield Problem(1, cell, subject, "claimed", says, f"at most {capacity}", repair, host.name, TOO_MUCH)
        total = sums.get(slot, 0)
        if claimed != total:
            advice = _advice(accounted_for, readable=total >= 0) if total <= MAX_AMOUNT else BEYOND_RANGE
            should = f"{total}" if total >= 0 else "readable"
            repair = _repair(accounted_for) if total <= MAX_AMOUNT else None
            yield Problem(2, cell, subject, "claimed", says, should, repair, host.name, advice)
    leased = sum(one["state"] in LEASED for _, one in load.placed)
    for name, count in (("claims", len(load.placed)), ("starting", leased)):
        if _amount(host.fields, name) != count:
            says, subject = host.fields.get(name, "0")[:SHOWN], f"{host.name} {name}"
            yield Problem(
                2, cell, subject, "count", says, f"{count}", _repair(accounted_for), host.name, _advice(accounted_for)
            )
    yield from _wrong_ids(cell, load, accounted_for)


def lease_problems(cell: str, load: Load, deadlines: Mapping[str, int], clock: Clock) -> Iterator[Problem]:
    """Yield leases without a deadline, or overdue, on a host that has attested: on other hosts none may expire."""
    host = load.host
    for claim_id, fields in load.placed if is_accounted_for(host, clock) else ():
        if fields["state"] not in LEASED:
            continue
        deadline = deadlines.get(claim_id)
        if deadline is None:
            yield Problem(5, cell, claim_id, "deadline", "none", "that of its lease", RepairKind.HOST, host.name)
        elif deadline < clock.now_ms - OVERDUE_MS:
            late = f"{(clock.now_ms - deadline) // 1000} s ago"
            advice = "no scheduler has ended it: look at the log of one, and whether any runs"
            yield Problem(5, cell, claim_id, "deadline", late, "ended by now", None, host.name, advice)


def stuck_endings(cell: str, load: Load, clock: Clock) -> Iterator[Problem]:
    """Yield ending claims that wait for a written-off host: the write-off or the evacuation should have ended them."""
    host = load.host
    evacuated = host.fields.get("draining") == "evacuate"
    if host.fields.get("epoch") != WRITTEN_OFF or not (evacuated or is_accounted_for(host, clock)):
        return
    for claim_id, fields in load.placed:
        if fields["state"] == ClaimStatus.ENDING:
            yield Problem(
                5, cell, claim_id, "claim", f"ending on {host.name}, lost", "ended", RepairKind.ENDING, claim_id
            )


def is_accounted_for(host: AuditedHost, clock: Clock) -> bool:
    """Return whether a host has attested to the current epoch, or was written off in it."""
    return clock.epoch in (host.fields.get("epoch"), host.fields.get("written_off"))


def legitimate_excess(load: Load) -> bool:
    """Return whether a host legitimately exceeds its capacity.

    Either it shrank or attested to more than it has (`over.<slot>`), or external usage exceeds what is left.
    """
    host = load.host
    return any(
        f"over.{slot}" in host.fields
        or _amount(host.fields, f"claimed.{slot}")
        <= _amount(host.fields, f"capacity.{slot}")
        < _amount(host.fields, f"claimed.{slot}") + _amount(host.fields, f"external.{slot}")
        for slot in _slots(load)
    )


def _wrong_ids(cell: str, load: Load, accounted_for: bool) -> Iterator[Problem]:
    host, here = load.host, {claim_id for claim_id, _ in load.placed}
    for claim_id in sorted(host.ids):
        fields = host.claims[claim_id]
        if claim_id not in here:
            found = f"{fields.get('state', 'unknown')} on {fields.get('host') or 'no host'}"
            should = f"not among the claims of {host.name}"
            yield Problem(
                2, cell, claim_id, "claim", found, should, _repair(accounted_for), host.name, _advice(accounted_for)
            )


def _repair(accounted_for: bool) -> RepairKind | None:
    return RepairKind.HOST if accounted_for else None


def _advice(accounted_for: bool, readable: bool = True) -> str:
    if not readable:
        return UNREADABLE
    return "" if accounted_for else UNATTESTED


def _amount(fields: Mapping[str, str], name: str) -> int:
    """Parse an amount; one that a manual edit made unreadable is -1, so that it equals no sum."""
    return parse_int(fields.get(name, "0"), -1)


def _slots(load: Load) -> Sequence[str]:
    kinds = ("claimed.", "capacity.")
    return sorted({name.partition(".")[2] for name in load.host.fields if name.startswith(kinds)}.union(load.sums))
