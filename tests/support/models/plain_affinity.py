"""The expected placements of the members of a call to claim.lua, computed from the existing claims one by one.

No counter is changed here: every number is the length of a list. So it can reveal wrong counters in the store.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from redsched.model import Amounts, Candidate, Claim, ClaimRule, GroupPolicy, HostLimit, RuleKind, ServerGroup
from redsched.store.codec.replies import ClaimCall, Member


@dataclass(frozen=True)
class PlainHost:
    """A host: its capacity by slot, and its domains (`zone`, `label:rack`)."""

    has: Amounts
    domains: Mapping[str, str]


@dataclass(frozen=True)
class Place:
    """An occupied place: by an existing claim, or by member `number` of the call."""

    host: str
    amounts: Amounts
    starting: bool
    group: str
    counted: Mapping[str, str]
    """The domains under which the place counts in its group."""
    number: int = -1
    id: str = ""


@dataclass
class World:
    """Hosts, declared groups, and the capacity of shared pools by slot. Some of the hosts are `written_off`."""

    hosts: Mapping[str, PlainHost]
    groups: Mapping[str, ServerGroup] = field(default_factory=dict)
    pools: Amounts = field(default_factory=dict)
    written_off: Collection[str] = ()

    def place(self, claims: Iterable[Claim], call: ClaimCall) -> list[tuple[str, int]] | None:
        """Return the host and the candidate's number for each member; None if one of them cannot be placed."""
        taken = [place for claim in claims for place in _places_of(claim)]
        found: list[tuple[str, int]] = []
        for number, member in enumerate(call.members):
            for index, candidate in enumerate(member.candidates):
                if self._takes(taken, call, number, member, candidate):
                    taken.append(self._placed(candidate, member.group, number))
                    found.append((candidate.host, index))
                    break
            else:
                return None
        return found

    def _takes(
        self, taken: Sequence[Place], call: ClaimCall, number: int, member: Member, candidate: Candidate
    ) -> bool:
        host, holding = candidate.host, self._holding(taken, member)
        is_open = host not in self.written_off
        room = all(self._fits(taken, host, *entry) for entry in candidate.amounts.items())
        rules = [rule for rule in call.rules if number in rule.members]
        if member.group:
            rules += self._policy(member.group, number)
        limited = _within(call.limits.get(host, HostLimit()), [one for one in taken if one.host == host])
        return is_open and room and limited and all(self._holds(rule, holding, host) for rule in rules)

    def _holding(self, taken: Sequence[Place], member: Member) -> list[Place]:
        """Return the places that restrict a member: not all of them restrict a claim that leaves a written-off host.

        In an affinity group the place that a claim leaves does not restrict it either.
        """
        replacement = member.replacement
        former = next(
            (one for one in taken if replacement and (one.id, one.host) == (member.id, replacement.host)), None
        )
        if former is None or former.group != member.group:
            return list(taken)
        group, is_dead = self.groups.get(member.group), former.host in self.written_off
        if group is not None and group.policy is GroupPolicy.AFFINITY:
            return [one for one in taken if one is not former and not (is_dead and one.host in self.written_off)]
        return [one for one in taken if not (is_dead and one is former)]

    def _fits(self, taken: Sequence[Place], host: str, slot: str, amount: int) -> bool:
        shared = slot.startswith("pool:")
        has = self.pools.get(slot, 0) if shared else self.hosts[host].has.get(slot, 0)
        return amount + sum(one.amounts.get(slot, 0) for one in taken if shared or one.host == host) <= has

    def _policy(self, name: str, number: int) -> list[ClaimRule]:
        group = self.groups[name]
        if group.policy is GroupPolicy.ANTI_AFFINITY:
            return [ClaimRule(RuleKind.APART, group.by, (number,), name, group.max_per_host)]
        if group.policy is GroupPolicy.AFFINITY:
            return [ClaimRule(RuleKind.TOGETHER, group.by, (number,), name)]
        return []

    def _holds(self, rule: ClaimRule, taken: Sequence[Place], host: str) -> bool:
        domain = self._domain(host, rule.by)
        if not domain:
            return False
        if rule.group:
            others = [self._counted_under(one, rule.by) for one in taken if one.group == rule.group]
        else:
            others = [self._domain(one.host, rule.by) for one in taken if one.number in rule.members]
        count = others.count(domain) + 1
        if rule.kind is RuleKind.APART:
            return count <= rule.most
        if rule.kind is RuleKind.TOGETHER:
            return set(others) <= {domain}
        return count - min(others.count(one) for one in (*rule.domains, domain)) <= rule.most

    def _domain(self, host: str, by: str) -> str:
        return host if by == "host" else self.hosts[host].domains.get(by, "")

    def _counted_under(self, place: Place, by: str) -> str:
        return place.host if by == "host" else place.counted.get(by, "")

    def _placed(self, candidate: Candidate, group: str, number: int) -> Place:
        by = self.groups[group].topologies() if group else ()
        counted = {one: self._domain(candidate.host, one) for one in by if one != "host"}
        return Place(candidate.host, candidate.amounts, True, group, counted, number)


def _places_of(claim: Claim) -> list[Place]:
    """Return the places of a claim: it counts with each of its placements."""
    return [
        Place(
            one.host,
            one.slots,
            one.state in ("claimed", "starting"),
            claim.server_group,
            one.counted,
            id=claim.claim_id,
        )
        for one in claim.placements
    ]


def _within(limit: HostLimit, there: Sequence[Place]) -> bool:
    starting = sum(one.starting for one in there)
    return (limit.claims is None or len(there) < limit.claims) and (limit.starting is None or starting < limit.starting)
