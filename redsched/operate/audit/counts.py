"""Audit the counters of server groups, shared pools and quotas. Invariants 1 and 2.

Their claims are on many hosts, and cannot be read at one instant. But a claim that joins or leaves a group or pool
changes the object's version; for a quota, its seq. If the version was the same before and after all claims were read,
the object counts exactly these claims; otherwise nothing can be concluded.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from redsched.model.records.audit import Problem, RepairKind
from redsched.model.validation import MAX_AMOUNT, SHARED_POOL, parse_int, split_slot
from redsched.operate.audit.hosts import BEYOND_RANGE
from redsched.pacing import in_order, paced
from redsched.scheduler.quotas.usage import usage_of
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counting_objects
from redsched.store.codec.fields import AMOUNT, COUNTED, placement_fields
from redsched.store.codec.keys import Kind

Fields = Mapping[str, str]
SharedObjects = Mapping[str, Fields]
"""The hashes of groups, pools and quotas by key suffix: `server-group:web`, `pool:licences`, `quota:web`."""

TOO_MUCH = "nothing of what is claimed is taken away: release claims, or declare what there is"
_COUNTS = ("members", "count.", "claimed.", "used.")


async def read_counts(store: CellStore) -> SharedObjects:
    """Read all groups, pools and quotas, including those that are no longer declared but still count claims."""
    found: dict[str, Fields] = {}
    for kind in (Kind.SERVER_GROUP, Kind.POOL, Kind.QUOTA):
        hashes = await store.declared.read(kind, await store.audit.names(kind))
        found |= {f"{kind}:{name}": fields for name, fields in hashes.items()}
    return found


class Counted:
    """The counts that each group, pool and quota should have, given all claims that have not ended."""

    def __init__(self, claims: Iterable[Fields] = ()) -> None:
        self.expected: dict[str, Counter[str]] = {}
        for claim in claims:
            self.take(claim)

    def take(self, claim: Fields) -> None:
        """Count one claim: in its quota once, in groups and pools with each of its placements."""
        if claim.get("project"):
            self._of(f"{Kind.QUOTA}:{claim['project']}").update(
                {f"used.{name}": amount for name, amount in usage_of(claim).items()}
            )
        for placement in placement_fields(claim):
            self._take_placement(placement)

    def _take_placement(self, claim: Fields) -> None:
        for group in counting_objects(claim.get("group", ""), ()):
            counted = {name[len(COUNTED) :]: value for name, value in claim.items() if name.startswith(COUNTED)}
            by = {"host": claim.get("host", ""), **counted}
            self._of(group).update(["members", *(f"count.{one}={by[one]}" for one in by)])
        for name, amount in claim.items():
            slot = name.removeprefix(AMOUNT)
            if slot != name and slot.startswith(SHARED_POOL):
                pool, resource_class = split_slot(slot)
                self._of(pool)[f"claimed.{resource_class}"] += parse_int(amount, -1)

    def _of(self, subject: str) -> Counter[str]:
        return self.expected.setdefault(subject, Counter())


async def count_problems(cell: str, before: SharedObjects, after: SharedObjects, counted: Counted) -> list[Problem]:
    """Return the problems of groups, pools and quotas, which were read before and after the `counted` claims."""
    expected, found = counted.expected, list[Problem]()
    async for name in paced(await in_order(after.keys() | expected.keys())):
        if mark(name, before) == mark(name, after):
            found += _problems(cell, name, after.get(name, {}), expected.get(name, Counter()))
    return found


async def legitimate_excess(objects: SharedObjects) -> tuple[str, ...]:
    """Return the pools that legitimately exceed their capacity: they shrank, or hosts restored claims."""
    found: list[str] = []
    async for name, fields in paced(objects.items()):
        if any(field.startswith("over.") for field in fields):
            found.append(name)
    return tuple(found)


def mark(name: str, objects: SharedObjects) -> str | None:
    """Return the version (for a quota, the seq), which changes when a claim joins or leaves."""
    return objects.get(name, {}).get("seq" if name.startswith(f"{Kind.QUOTA}:") else "version")


def _problems(cell: str, name: str, fields: Fields, expected: Counter[str]) -> Iterator[Problem]:
    for field in sorted(expected.keys() | {field for field in fields if field.startswith(_COUNTS)}):
        says = fields.get(field, "0")
        # A value that a manual edit made unreadable equals no sum.
        wrong = parse_int(says, -1) != expected[field]
        if wrong:
            repair, advice = (RepairKind.COUNTS, "") if expected[field] <= MAX_AMOUNT else (None, BEYOND_RANGE)
            yield Problem(2, cell, f"{name} {field}", "count", says[:40], f"{expected[field]}", repair, name, advice)
        resource_class = field.removeprefix("claimed.")
        capacity = parse_int(fields.get(f"capacity.{resource_class}", "0"), -1)
        if resource_class != field and parse_int(says, -1) > capacity and not _is_legitimate(fields, resource_class):
            subject, repair = f"{name} {resource_class}", RepairKind.COUNTS if wrong else None
            yield Problem(1, cell, subject, "claimed", says[:40], f"at most {capacity}", repair, name, TOO_MUCH)


def _is_legitimate(fields: Fields, resource_class: str) -> bool:
    """Return whether an excess is legitimate: marked `over`, or of a pool that is not declared and has no capacity."""
    return f"over.{resource_class}" in fields or not any(field.startswith("capacity.") for field in fields)
