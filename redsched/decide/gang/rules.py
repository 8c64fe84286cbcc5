"""What must hold of the places together when they are claimed: one rule for each group and demand, over all kinds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from redsched.cache.columns import Columns
from redsched.decide.affinity import Eligible, claim_rules
from redsched.decide.gang.kinds import Kind, eligible_together
from redsched.decide.gang.relations import aparts_of
from redsched.model import ClaimRule, Request, RuleKind


def rules_of_places(
    call: Request, kinds: Sequence[Kind], numbers: Sequence[int], columns: Columns
) -> tuple[ClaimRule, ...]:
    """Rules over places by their number in the call; `numbers` has the number of the kind of each.

    None is given that a single place cannot break: without a server group that takes two.
    """
    rules = (*_of_groups(kinds, numbers, columns), *_apart(call, kinds, numbers))
    return tuple(rule for rule in rules if rule.group or len(rule.members) > 1)


def eligible_of(kinds: Sequence[Kind], kind: Kind) -> Eligible:
    """Over the domains of which hosts the places of a kind are spread: those of its own, where a group is counted."""
    if kind.request.server_group:
        return lambda _by: kind.shape.eligible
    return lambda by: eligible_together(kinds, by)


def _of_groups(kinds: Sequence[Kind], numbers: Sequence[int], columns: Columns) -> Iterator[ClaimRule]:
    merged: dict[ClaimRule, list[int]] = {}
    for number, kind in enumerate(kinds):
        members = _places(numbers, frozenset((number,)))
        if members and (kind.request.server_group or kind.request.spread):
            for rule in claim_rules(kind.request, columns, eligible_of(kinds, kind), ()):
                merged.setdefault(rule, []).extend(members)
    for rule, places in merged.items():
        yield replace(rule, members=tuple(sorted(places)))


def _apart(call: Request, kinds: Sequence[Kind], numbers: Sequence[int]) -> Iterator[ClaimRule]:
    for related in aparts_of(call, kinds):
        yield ClaimRule(RuleKind.APART, "host", _places(numbers, related))


def _places(numbers: Sequence[int], kinds: frozenset[int]) -> tuple[int, ...]:
    return tuple(place for place, number in enumerate(numbers) if number in kinds)
