"""Audit by what the members of server groups are counted: the zone and labels that their hosts have. Invariant 2.

Labels are read after the claims of a host, so a suspicion counts only if further audits find it too.
"""

from collections import Counter
from collections.abc import Mapping

from redsched.cache.entries import GroupState
from redsched.model import HELD
from redsched.model.records.audit import Problem, RepairKind
from redsched.operate.audit.counts import SharedObjects, mark
from redsched.operate.audit.hosts import Load
from redsched.pacing import paced
from redsched.store.cell import CellStore
from redsched.store.codec.fields import COUNTED, WRITTEN_OFF
from redsched.store.codec.keys import Kind
from redsched.store.codec.replies import AuditedHost

LABEL = "label:"
"""What the topology of a label begins with."""
Topologies = Mapping[str, tuple[str, ...]]
"""The topologies by which each declared group counts, by its name; without `host`."""


async def group_states(objects: SharedObjects) -> dict[str, GroupState]:
    """Return the declared server groups among these hashes, by name."""
    found: dict[str, GroupState] = {}
    async for key, fields in paced(objects.items()):
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
    members, labels = list[tuple[str, Mapping[str, str]]](), set[str]()
    async for claim, fields in paced(load.placed):
        if fields.get("group"):
            members.append((claim, fields))
            labels.update(by for by in _counted_by(fields, topologies) if by.startswith(LABEL))
    if not members:
        return []
    where = {"zone": load.host.fields.get("zone", "")}
    where |= await store.audit.labels(load.host.name, sorted(labels)) if labels else {}
    found = list[Problem]()
    async for claim, fields in paced(members):
        for by in _counted_by(fields, topologies):
            counted, should = fields.get(f"{COUNTED}{by}", ""), where.get(by, "")
            if counted != should:
                shown = (counted[:40] or "nothing", should[:40] or "nothing")
                found.append(
                    Problem(2, store.name, f"{claim} {by}", "counted", *shown, RepairKind.MEMBERS, load.host.name)
                )
    return found


def _counted_by(fields: Mapping[str, str], topologies: Topologies) -> tuple[str, ...]:
    """Return the topologies of a placement's group; of one that is not declared, those that it is counted by."""
    known = topologies.get(fields["group"])
    if known is not None:
        return known
    return ("zone", *(name[len(COUNTED) :] for name in sorted(fields) if name.startswith(COUNTED + LABEL)))


class Whereabouts:
    """Where the members of groups with a hard policy are: each once, also while it moves, unless it is ending."""

    def __init__(self, groups: Mapping[str, GroupState]) -> None:
        self._groups = groups
        self._counts: dict[str, Counter[str]] = {}

    async def take(self, host: AuditedHost) -> None:
        """Count the claims that are mainly on a host, unless it was written off: its members are lost."""
        if host.fields.get("epoch") == WRITTEN_OFF:
            return
        async for fields in paced(host.claims.values()):
            state = self._groups.get(fields.get("group", ""))
            if state is not None and fields.get("host") == host.name and fields.get("state") in HELD:
                by = state.group.by
                domain = host.name if by == "host" else fields.get(f"{COUNTED}{by}", "")
                self._counts.setdefault(state.name, Counter())[domain] += 1

    async def broken_rules(self, before: SharedObjects, after: SharedObjects) -> tuple[str, ...]:
        """Return the groups whose hard policy is broken, and how. No claim has done that: hosts have changed.

        Of a group that has changed between the two reads of the hashes, a claim may have been seen twice.
        """
        found = list[str]()
        async for name, counts in paced(sorted(self._counts.items())):
            key, group = f"{Kind.SERVER_GROUP}:{name}", self._groups[name].group
            known = {domain: number for domain, number in counts.items() if domain}
            how = group.breach(counts.total(), known) if mark(key, before) == mark(key, after) else ""
            if how:
                found.append(f"{name}, {group.policy} by {group.by}: {how}")
        return tuple(found)
