"""The search for a whole gang: step by step, hardest first, with backtracking and a budget of tries.

greedy      a place without a host displaces others (`repair`); if that fails, the next domain of the latest
            colocation that applies to it
systematic  every choice of every step in turn, so that a gang is found if there is room for it: for few places
            and few hosts, as the tries are bounded
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from redsched.decide.gang.order import Step
from redsched.decide.gang.queue import Option
from redsched.decide.gang.relations import Colocation
from redsched.decide.gang.repair import Budget, Repair
from redsched.decide.gang.table import Hosts, PickPolicy, Table
from redsched.decide.work_limit import check_work, work_at_place

MAX_DOMAINS = 32
"""The most domains of a colocation that are tried while all earlier places stay as they are."""
FEW = 4
"""Kinds with at most this many hosts are protected: no other place may take the last of them."""
LOOKED_AFTER = 8
"""How many such kinds are checked when a place is assigned."""

Choice = Callable[[], None]
"""One choice of a step. Calling it assigns a place, or fixes the domain of a colocation."""


class Search:
    """One search over all steps. Places of the kinds in `still` must not be moved once assigned.

    `failed` is the first step for which nothing was found.
    """

    def __init__(
        self, table: Table, steps: Sequence[Step], pick: PickPolicy, budget: Budget, fixed_kinds: frozenset[int]
    ) -> None:
        self.failed: Step | None = None
        self._table = table
        self._steps = steps
        self._pick = pick
        self._budget = budget
        self._repair = Repair(table, budget, fixed_kinds)
        self._scarce = [number for number in table.scarce(FEW) if number not in fixed_kinds]

    def greedy(self) -> bool:
        """Return whether every step succeeded, with hardly any backtracking."""
        domains: dict[int, Iterator[Choice]] = {}
        at = 0
        while at < len(self._steps):
            if self._try_step(at, domains):
                at += 1
                continue
            back = self._back_from(at)
            if back < 0 or not self._budget.left:
                return False
            self._unassign(back, at)
            at = back
        return True

    def systematic(self) -> bool:
        """Return whether every step succeeded, trying everything that the budget allows."""
        choices = [self._choices(self._steps[0])]
        while choices:
            at = len(choices) - 1
            if not self._advance(self._steps[at], choices[at]):
                if not self._budget.left:
                    return False
                choices.pop()
            elif len(choices) < len(self._steps):
                choices.append(self._choices(self._steps[at + 1]))
            else:
                return True
        return False

    def partial(self) -> None:
        """Assign every place that there is room for, one after the other, and skip the others."""
        self._scarce = []
        for step in self._steps:
            if not self._advance(step, self._choices(step, whole=False)) and isinstance(step, Colocation):
                self._table.shut(step)

    def _try_step(self, at: int, domains: dict[int, Iterator[Choice]]) -> bool:
        """Return whether a step succeeds, greedily. A colocation continues with the domain after its last one."""
        step = self._steps[at]
        if isinstance(step, int):
            found = self._advance(step, self._choices(step)) or self._repair.make_room(step)
        else:
            found = self._advance(step, self._begun(domains, at))
            if not found:
                del domains[at]
        if not found and self.failed is None:
            self.failed = step
        return found

    def _begun(self, domains: dict[int, Iterator[Choice]], at: int) -> Iterator[Choice]:
        if at not in domains:
            domains[at] = self._choices(self._steps[at])
        return domains[at]

    def _advance(self, step: Step, choices: Iterator[Choice]) -> bool:
        """Undo a step's choice and take its next one that leaves other kinds a host; return False if there is none."""
        self._undo(step)
        for choice in choices:
            choice()
            if not isinstance(step, int) or not self._starves(step):
                return True
            self._undo(step)
        return False

    def _choices(self, step: Step, whole: bool = True) -> Iterator[Choice]:
        self._budget.spend()
        if isinstance(step, int):
            work_at_place(step + 1, len(self._table.kind_of))
            check_work("searching a host")
            return self._assignments(step)
        check_work(f"searching one {step.by} for several places")
        return self._domains(step, whole)

    def _assignments(self, place: int) -> Iterator[Choice]:
        profile = self._table.kinds[self._table.kind_of[place]].profile
        queue = self._table.queue(place)

        def peers(best: Sequence[Option]) -> int:
            rows = [row for row, _ in best]
            return profile.ranking.peers(rows, [*map(queue.score, rows)])

        for row, candidate in self._pick.of(queue.options(), peers):
            yield partial(self._table.state.assign, place, row, candidate)

    def _domains(self, colocation: Colocation, whole: bool) -> Iterator[Choice]:
        domains = self._table.domains(colocation, whole)
        if colocation.by == "host":
            domains = self._pick.of(domains, partial(self._peers, colocation))
        for hosts in islice(domains, MAX_DOMAINS):
            yield partial(self._table.fix, colocation, hosts)

    def _peers(self, colocation: Colocation, best: Sequence[Hosts]) -> int:
        """Return how many of the first of these hosts are as good as the first one for each of the places."""
        rows = [int(hosts.argmax()) for hosts in best]
        return min(
            self._table.kinds[number].profile.ranking.peers(rows, self._table.scores(number, rows))
            for number in colocation.kinds
        )

    def _undo(self, step: Step) -> None:
        if isinstance(step, int):
            self._table.state.unassign(step)
        else:
            self._table.loosen(step)

    def _unassign(self, first: int, end: int) -> None:
        for step in reversed(self._steps[first:end]):
            self._undo(step)

    def _back_from(self, at: int) -> int:
        """Return the latest colocation before a step that applies to it too; -1 if there is none."""
        kinds = self._kinds_of(self._steps[at])
        for back in range(at - 1, -1, -1):
            step = self._steps[back]
            if not isinstance(step, int) and step.kinds & kinds:
                return back
        return -1

    def _kinds_of(self, step: Step) -> frozenset[int]:
        return frozenset((self._table.kind_of[step],)) if isinstance(step, int) else step.kinds

    def _starves(self, place: int) -> bool:
        """Return whether a place has just taken the last host of another kind that still needs one."""
        row, own = self._table.state.assignments[place].row, self._table.kind_of[place]
        waiting = (number for number in self._scarce if number != own and self._table.waits(number))
        touched = (queue for number in waiting if row in (queue := self._table.queue_of(number)))
        return any(next(queue.options(), None) is None for queue in islice(touched, LOOKED_AFTER))
