"""Explain why no host fits a request: the number of hosts rejected for each reason, and the nearest hosts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from redsched.decide.causes import KEPT
from redsched.decide.explain.nearest import NEAREST
from redsched.decide.explain.places import merge_places
from redsched.decide.explain.unknown import merge_unknown
from redsched.decide.filters.hosts import NOT_ATTESTED
from redsched.decide.steps import finished
from redsched.decide.work_limit import TooMuchWork, WorkLimit, within
from redsched.errors import NoValidHost, RedschedError, Settling
from redsched.model import Group, ReasonCount, Request
from redsched.model.gpus import amount_text, gpus_of, in_words, share_a_node
from redsched.model.records.explanations import Explanation, Miss
from redsched.model.records.problems import NoValidHostFacts
from redsched.model.reserved_for import UNNAMED
from redsched.model.workload import GPU_SHARES
from redsched.pacing import in_slices
from redsched.scheduler.cells import Cell

MAX_TESTS = 16
"""The most changes of a refused request that are tested, on all of the nearest hosts together.

A refusal costs up to five times a success. `explain` tests all changes.
"""


class PendingRefusal:
    """Why a cell refused a request: the counts as of the decision, and the changes that would help once they are found.

    `settled` says whether the cell was settled then.
    """

    def __init__(self, cell: Cell, request: Request, limit: WorkLimit, counts: Sequence[ReasonCount] = ()) -> None:
        """Find the counts. If that reaches the limit, they are those of the decision, `counts`."""
        self.settled = cell.updater.settled
        self._steps = within(limit, cell.decider.refusal_steps(request, MAX_TESTS))
        self._found: Explanation | None = None
        try:
            next(self._steps)
        except TooMuchWork:
            self._found = Explanation(
                hosts=len(cell.updater.columns), fits=0, reasons=tuple(counts), nearest=(), cut_short=True
            )

    async def found(self) -> Explanation:
        """Return the explanation, after finding the changes in time slices."""
        if self._found is None:
            self._found = await in_slices(self._steps)
        return self._found

    def found_at_once(self) -> Explanation:
        """Return the explanation without letting other tasks run."""
        if self._found is None:
            self._found = finished(self._steps)
        return self._found


@dataclass(frozen=True, slots=True)
class FoundRefusal:
    """Why a cell refused a request, as a planner has found it, and whether the cell was settled then."""

    explanation: Explanation
    settled: bool

    async def found(self) -> Explanation:
        """Return the explanation, as `PendingRefusal.found` does."""
        return self.explanation

    def found_at_once(self) -> Explanation:
        """Return the explanation, as `PendingRefusal.found_at_once` does."""
        return self.explanation


def refusal(
    settled: bool, request: Request, found: Sequence[Explanation], *, is_complete: bool = False, waits: str = ""
) -> RedschedError:
    """Return NoValidHost with the reasons found, or Settling while hosts may still attest to a new epoch.

    `settled` says whether all cells were settled when the reasons were found: a host that attests in between must not
    cause a refusal. `waits`: for how many hosts, and how long, the others wait. `is_complete` says whether `found` has
    all cells: zones and hosts may be those of other cells.
    """
    reasons = merge_reasons([one.reasons for one in found])
    hosts = sum(one.hosts for one in found)
    unattested = next((one.hosts for one in reasons if one.reason == NOT_ATTESTED), 0)
    if (unattested or not hosts) and not settled:
        waited_for = (
            f"{unattested} of {hosts} hosts have not" if hosts else "the store is new or was wiped, and no host has yet"
        )
        return Settling(f"no host fits yet: {waited_for} attested to its epoch; try again{waits}")
    nearest = merge_nearest([one.nearest for one in found])
    # The API leaves out for whom amounts are kept for callers who may not know it; the text never says it.
    cut_short = any(one.cut_short for one in found) or None
    notes = [merge_unknown(found).unknown_text] if is_complete else []
    places = merge_places(one.places for one in found)
    if places is not None:
        notes.append(places.text)
    facts = NoValidHostFacts(reasons=reasons, nearest=nearest, cut_short=cut_short, places=places)
    return NoValidHost(refusal_text(hosts, request, reasons, nearest, "; ".join(filter(None, notes))), facts)


def merge_reasons(counts: Sequence[Sequence[ReasonCount]]) -> tuple[ReasonCount, ...]:
    """Add up the counts of several cells, in the order in which the reasons first appear."""
    total: Counter[str] = Counter()
    for cell in counts:
        total.update({one.reason: one.hosts for one in cell})
    return tuple(ReasonCount(reason, hosts) for reason, hosts in total.items())


def merge_nearest(misses: Sequence[Sequence[Miss]]) -> tuple[Miss, ...]:
    """Return the nearest misses of several cells, nearest first, at most NEAREST."""
    found = sorted((one for cell in misses for one in cell), key=lambda miss: (miss.distance, miss.host))
    return tuple(found[:NEAREST])


def refusal_text(
    hosts: int, request: Request, reasons: Sequence[ReasonCount], nearest: Sequence[Miss] = (), notes: str = ""
) -> str:
    """Return one sentence about a request that none of so many hosts can take, with the reasons.

    `notes`: that about zones and hosts of the request which do not exist, and about the number of its places.
    """
    if not hosts:
        return "no host has reported yet: start an agent, or `redsched up`"
    why = ", ".join(one.text for one in in_words(request, reasons)) or "not enough places in one cell"
    is_kept = any(one.reason.endswith(KEPT) for one in reasons)
    nearby = "".join(f"; {near(one)}" for one in nearest[:1] if one.changes or (is_kept and one.kept))
    return f"none of {hosts} hosts can take {_wanted(request)}: {why}{notes and '; '}{notes}{nearby}"


def near(miss: Miss) -> str:
    """Describe the changes after which a near host would take the request, and what it keeps for another one."""
    of = f" for {miss.member}" if miss.member else ""
    changes = ", ".join(miss.changes)
    if miss.kept is None:
        return f"nearest{of} {miss.host}: {changes}"
    kept = " and ".join(f"{amount} {slot}" for slot, amount in sorted(miss.kept.slots.items()))
    return f"nearest{of} {miss.host}: {changes}{changes and ', as '}{kept} are {UNNAMED}"


def _wanted(request: Request) -> str:
    if request.members:
        return ", ".join(f"{one.count} of {one.name} ({_wanted(one.request)})" for one in request.members)
    parts = [f"{amount} {name}" for name, amount in request.resources.items()]
    gpus = gpus_of(request)
    parts += [_wanted_gpus(request, gpus)] if gpus else []
    for group in request.groups:
        if group not in gpus:
            parts += [f"{amount} {name} in group {group.name}" for name, amount in group.resources.items()]
    parts += [f"{one.count} {one.resource_class} as devices" for one in request.pci]
    parts += [f"{len(request.numa.cells)} NUMA cells"] if request.numa else []
    return f"{request.count} places of {', '.join(parts)}" if request.count > 1 else ", ".join(parts)


def _wanted_gpus(request: Request, gpus: Sequence[Group]) -> str:
    """Return GPUs in words: "2 GPUs of one NUMA node", or "2 GPUs with 16384 CUSTOM_GPU_MEMORY_MB each"."""
    amounts = dict(gpus[0].resources)
    text = amount_text(GPU_SHARES, amounts.pop(GPU_SHARES) * len(gpus))
    others = " and ".join(f"{amount} {name}" for name, amount in amounts.items())
    text += f" with {others}{' each' if len(gpus) > 1 else ''}" if others else ""
    return f"{text} of one NUMA node" if share_a_node(request, gpus) else text
