"""Auditing what claims count in beside their hosts: server groups, shared pools, quotas. Invariants 1 and 2.

Their claims lie on many hosts, and cannot be read at one instant. But whatever joins or leaves a group or pool moves
its version, and a quota's seq. Where that was the same before and after all claims were read, these are the claims that
it counts; where it was not, nothing can be said.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from redsched.names import split_slot, whole
from redsched.scheduler.taken import usage_of
from redsched.scheduler.views import Mend, Problem
from redsched.store import CellStore, Kind, drawn_on
from redsched.store.fields import AMOUNT, COUNTED, placement_fields

Fields = Mapping[str, str]
Things = Mapping[str, Fields]
"""The hashes of groups, pools and quotas, named as their keys end: `server-group:web`, `pool:licences`, `quota:web`."""

TOO_MUCH = "nothing of what is claimed is taken away: release claims, or declare what there is"
_COUNTS = ("members", "count.", "claimed.", "used.")


async def read_counts(store: CellStore) -> Things:
    """All groups, pools and quotas, those included that nobody declares and that claims still count in."""
    found: dict[str, Fields] = {}
    for kind in (Kind.SERVER_GROUP, Kind.POOL, Kind.QUOTA):
        hashes = await store.read_things(kind, await store.all_names(kind))
        found |= {f"{kind}:{name}": fields for name, fields in hashes.items()}
    return found


def count_problems(cell: str, before: Things, after: Things, claims: Iterable[Fields]) -> list[Problem]:
    """What is wrong with what was read before and after `claims`, which are all that have not ended."""
    expected = _expected(claims)
    return [
        problem
        for name in sorted(after.keys() | expected.keys())
        if _mark(name, before) == _mark(name, after)
        for problem in _problems(cell, name, after.get(name, {}), expected.get(name, Counter()))
    ]


def over_by_rights(things: Things) -> tuple[str, ...]:
    """The pools that hold more than they have because they shrank, or because hosts brought more back."""
    return tuple(name for name, fields in things.items() if any(field.startswith("over.") for field in fields))


def _mark(name: str, things: Things) -> str | None:
    """What claims that join or leave a thing move."""
    return things.get(name, {}).get("seq" if name.startswith(f"{Kind.QUOTA}:") else "version")


def _expected(claims: Iterable[Fields]) -> dict[str, Counter[str]]:
    """What each group, pool and quota should count."""
    counts: dict[str, Counter[str]] = {}
    living = list(claims)
    for claim in living:
        _count_usage(counts, claim)
    for claim in (one for fields in living for one in placement_fields(fields)):
        amounts = {name[len(AMOUNT) :]: value for name, value in claim.items() if name.startswith(AMOUNT)}
        pools = drawn_on("", amounts)
        for group in drawn_on(claim.get("group", ""), ()):
            counted = {name[len(COUNTED) :]: value for name, value in claim.items() if name.startswith(COUNTED)}
            by = {"host": claim.get("host", ""), **counted}
            counts.setdefault(group, Counter()).update(["members", *(f"count.{one}={by[one]}" for one in by)])
        for slot, amount in amounts.items():
            pool, resource_class = split_slot(slot)
            if pool in pools:
                counts.setdefault(pool, Counter())[f"claimed.{resource_class}"] += whole(amount, -1)
    return counts


def _count_usage(counts: dict[str, Counter[str]], claim: Fields) -> None:
    if claim.get("project"):
        usage = {f"used.{name}": amount for name, amount in usage_of(claim).items()}
        counts.setdefault(f"quota:{claim['project']}", Counter()).update(usage)


def _problems(cell: str, name: str, fields: Fields, expected: Counter[str]) -> Iterator[Problem]:
    for field in sorted(expected.keys() | {field for field in fields if field.startswith(_COUNTS)}):
        says = fields.get(field, "0")
        # What somebody has made unreadable equals no sum.
        wrong = whole(says, -1) != expected[field]
        if wrong:
            yield Problem(2, cell, f"{name} {field}", "count", says[:40], f"{expected[field]}", Mend.COUNTS, name)
        resource_class = field.removeprefix("claimed.")
        capacity = whole(fields.get(f"capacity.{resource_class}", "0"), -1)
        if resource_class != field and whole(says, -1) > capacity and not _excused(fields, resource_class):
            thing, mend = f"{name} {resource_class}", Mend.COUNTS if wrong else None
            yield Problem(1, cell, thing, "claimed", says[:40], f"at most {capacity}", mend, name, TOO_MUCH)


def _excused(fields: Fields, resource_class: str) -> bool:
    """Over by rights, or not declared, so that it has no capacity at all."""
    return f"over.{resource_class}" in fields or not any(field.startswith("capacity.") for field in fields)
