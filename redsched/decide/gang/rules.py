"""The rules that the places must satisfy together when claimed: one for each group and demand, over all kinds."""

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
    """Return the rules over places by their number in the call; `numbers` has the kind's number of each place.

    Omits rules that a single place cannot break: without a server group, rules over fewer than two places.
    """
    rules = (*_of_groups(kinds, numbers, columns), *_apart(call, kinds, numbers))
    return tuple(rule for rule in rules if rule.group or len(rule.members) > 1)


def eligible_of(kinds: Sequence[Kind], kind: Kind) -> Eligible:
    """Return the hosts over whose domains a kind's places are spread: the kind's own if a server group counts them."""
    if kind.request.server_group:
        return lambda _by: kind.profile.fitting.eligible
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
