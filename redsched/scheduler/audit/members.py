"""Audit by what the members of server groups are counted: the zone and labels that their hosts have. Invariant 2.

Labels are read after the claims of a host, so a suspicion counts only if further audits find it too.
"""

from collections.abc import Iterable, Iterator, Mapping

from redsched.cache.entries import GroupState
from redsched.scheduler.audit.counts import Counted, SharedObjects
from redsched.scheduler.audit.hosts import Load
from redsched.scheduler.results import Problem, RepairKind
from redsched.store.cell import CellStore
from redsched.store.codec.fields import COUNTED
from redsched.store.codec.keys import Kind

LABEL = "label:"
"""What the topology of a label begins with."""
Topologies = Mapping[str, tuple[str, ...]]
"""The topologies by which each declared group counts, by its name; without `host`."""


def group_states(objects: SharedObjects) -> dict[str, GroupState]:
    """Return the declared server groups among these hashes, by name."""
    found: dict[str, GroupState] = {}
    for key, fields in objects.items():
        kind, _, name = key.partition(":")
        if kind == Kind.SERVER_GROUP:
            state = GroupState(name)
            state.apply(fields)
            if state.declared:
                found[name] = state
    return found


def topologies_of(groups: Mapping[str, GroupState]) -> Topologies:
    """Return by what each of these groups counts its members."""
    return {name: state.group.topologies()[1:] for name, state in groups.items()}


async def member_problems(store: CellStore, load: Load, topologies: Topologies) -> list[Problem]:
    """Return the placements on a host that their groups count by another zone or label than the host has."""
    members = [(claim, fields) for claim, fields in load.placed if fields.get("group")]
    if not members:
        return []
    labels = {by for _, one in members for by in _counted_by(one, topologies) if by.startswith(LABEL)}
    where = {"zone": load.host.fields.get("zone", "")}
    where |= await store.audit.labels(load.host.name, sorted(labels)) if labels else {}
    return list(_miscounted(store.name, load.host.name, members, where, topologies))


def _miscounted(
    cell: str,
    host: str,
    members: Iterable[tuple[str, Mapping[str, str]]],
    where: Mapping[str, str],
    topologies: Topologies,
) -> Iterator[Problem]:
    for claim, fields in members:
        for by in _counted_by(fields, topologies):
            counted, should = fields.get(f"{COUNTED}{by}", ""), where.get(by, "")
            if counted != should:
                found = counted[:40] or "nothing"
                yield Problem(
                    2, cell, f"{claim} {by}", "counted", found, should[:40] or "nothing", RepairKind.MEMBERS, host
                )


def _counted_by(fields: Mapping[str, str], topologies: Topologies) -> tuple[str, ...]:
    """Return the topologies of a placement's group; of one that is not declared, those that it is counted by."""
    known = topologies.get(fields["group"])
    if known is not None:
        return known
    return ("zone", *(name[len(COUNTED) :] for name in sorted(fields) if name.startswith(COUNTED + LABEL)))


def broken_rules(groups: Mapping[str, GroupState], counted: Counted) -> Iterator[str]:
    """Yield the groups whose hard policy is broken, and how, by the claims that were read; no claim has done that."""
    for name in sorted(groups):
        counts: Mapping[str, int] = counted.expected.get(f"{Kind.SERVER_GROUP}:{name}", {})
        group = groups[name].group
        prefix = f"count.{group.by}="
        domains = {field.removeprefix(prefix): number for field, number in counts.items() if field.startswith(prefix)}
        if how := group.breach(counts.get("members", 0), domains):
            yield f"{name}, {group.policy} by {group.by}: {how}"
