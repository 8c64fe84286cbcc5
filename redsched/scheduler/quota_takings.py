"""What claims are about to take of a quota, and in which words they are refused it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace

from redsched.decide import Decision, Exceeded
from redsched.errors import QuotaExceeded
from redsched.model import Amounts
from redsched.scheduler.cells import Cell
from redsched.scheduler.taken import taken
from redsched.store import Answer, ClaimAnswer, ClaimCall, Member, Taking


def places_take(decision: Decision) -> Amounts:
    """What the places of a decision take together."""
    total: Counter[str] = Counter()
    for place in decision.places:
        total.update(taken(place.chosen.amounts))
    return total


def exceeded(project: str, found_over: Sequence[tuple[str, int, int, int]]) -> QuotaExceeded:
    """The refusal, with the numbers."""
    found = [Exceeded(*one) for one in found_over]
    said = ", ".join(one.detail for one in found)
    return QuotaExceeded(
        f"the quota of project {project} does not allow it: {said}. Release something, or have the quota raised",
        {"project": project, "exceeded": [asdict(one) for one in found]},
    )


def most(member: Member, known_as: str, cell: Cell) -> Taking:
    """What a member takes at most, wherever it goes."""
    largest: Counter[str] = Counter()
    for candidate in member.candidates:
        largest |= Counter(taken(candidate.amounts))
    return Taking(known_as, largest, member.id, cell.name)


def placed(call: ClaimCall, takings: Sequence[Taking], answer: ClaimAnswer) -> list[Taking]:
    """What the members take where they were placed."""
    where = zip(call.members, takings, answer.placed, strict=True)
    return [
        replace(taking, amounts=taken(member.candidates[one.candidate or 0].amounts)) for member, taking, one in where
    ]


def over(answer: Answer) -> list[tuple[str, int, int, int]]:
    """What a reservation was refused for: class, limit, used, asked of each."""
    facts = answer.facts
    rows = (facts[first : first + 4] for first in range(0, len(facts), 4))
    return sorted((name, int(limit), int(used), int(asked)) for name, limit, used, asked in rows)
