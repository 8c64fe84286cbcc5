"""Server groups whose members are where their hard policy does not allow them."""

from collections.abc import Iterator

from redsched.model.records.status import StatusProblem
from redsched.operate.status.broken_rules import BrokenRule
from redsched.operate.status.facts import CellFacts
from redsched.wording import counted, named, problem_about

MAX_SHOWN = 3
"""How many groups, and how many members of each, are named."""


def rule_broken(cell: str, facts: CellFacts) -> Iterator[StatusProblem]:
    """Find server groups whose hard policy is broken now."""
    if not facts.broken:
        return
    groups, first = [one.group.name for one in facts.broken], facts.broken[0]
    have = "has members where its rule does" if len(groups) == 1 else "have members where their rules do"
    which = "; ".join(_described(one) for one in facts.broken[:MAX_SHOWN])
    more = f"; and {len(groups) - MAX_SHOWN} more" if len(groups) > MAX_SHOWN else ""
    show = f"redsched server-group show {groups[0]}"
    yield problem_about(
        "rule-broken",
        cell,
        groups,
        f"{counted(len(groups), 'server group')} {have} not allow them: {which}{more}",
        "the work runs on: move or release members until the rule holds, or correct the zone or labels of their hosts",
        (show, f"redsched claim move {first.members[0]}") if first.members else (show,),
    )


def _described(one: BrokenRule) -> str:
    claims = f" ({named(one.members, MAX_SHOWN)})" if one.members else ""
    return f"{one.group.name}, {one.group.policy} by {one.group.by}: {one.how}{claims}"
