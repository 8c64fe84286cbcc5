"""What reservations do for large tasks under churn: how many are placed, how long they wait, and what that costs.

    python -m benchmarks.reservations NODES.csv TASKS.csv ... [--policy gpu] [--seed 42] [--wait 0 0.5 1 2]
                                      [--no-reserve] [--in-order] [--json]

The churn is that of `benchmarks.packing`: 130 % of the fleet's GPUs stay requested, and before each task a random one
of those requested ends. So a task lives for as many steps as tasks are requested, on average: the lifetime, in which
waits are given. With `--wait 0`, what fits nowhere is refused. Otherwise all tasks wait until they fit: whenever a task
leaves a host, those that wait are tried there, in random order, as if they waited at many schedulers that race for the
room; or with `--in-order` the earliest first, as at a single scheduler. Tasks for 8 GPUs give up after `--wait`
lifetimes, and reserve a host meanwhile, as schedulers do; others wait until it is their turn to end. With
`--no-reserve` nothing is reserved.

For the tasks for 8 GPUs that were requested after the warm-up and whose wait is over: the part that was placed, and how
long these waited on average. For the fleet: the mean allocated part of its GPUs after the warm-up.
"""

import argparse
import itertools
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from statistics import mean

from benchmarks.openb import Node, Task, read_nodes, read_tasks
from benchmarks.packing import EPOCH, FURTHER, LARGE, Fleet, Run, gpu_milli, make_columns, sequence, settings_for
from benchmarks.trace_checks import is_gpu
from redsched.decide.reserving import Wait
from redsched.model import Candidate, Claim, ClaimStatus, Placement
from redsched.scheduler.selection.reservations import COMPARED
from redsched.settings import Settings

RENEWALS = 20
"""How often a request that waits looks for a better host in a lifetime. Schedulers do so every 5 s."""


@dataclass(frozen=True, slots=True)
class Waited:
    """One run. `wait` and `mean_wait` are in lifetimes, `percent` is the mean allocated part of all GPUs."""

    tasks: str
    policy: str
    seed: int
    wait: float
    large: int
    large_placed: int
    mean_wait: float
    percent: float
    reserves: bool
    in_order: bool


@dataclass(eq=False)
class _Waiting:
    """A task that waits, and the host reserved for it, if any."""

    number: int
    task: Task
    since: int
    host: str = ""


@dataclass
class ReservingFleet(Fleet):
    """A fleet whose large tasks reserve hosts while they wait."""

    on_host: dict[str, dict[int, Claim]] = field(default_factory=dict)
    reserves: bool = True

    def hold(self, number: int, where: Candidate) -> None:
        """Note where a task is."""
        token = f"{EPOCH}.{number}"
        placement = Placement(token, token, token, where.host, ClaimStatus.ACTIVE, where.amounts)
        claim = Claim(str(number), "c1", where.host, ClaimStatus.ACTIVE, token, where.amounts, placements=(placement,))
        self.on_host.setdefault(where.host, {})[number] = claim

    def end(self, number: int, where: Candidate) -> None:
        """End a task that is on a host."""
        del self.on_host[where.host][number]
        self.release(where)

    def reserve(self, one: _Waiting) -> None:
        """Reserve the best host for a task that waits, or keep the one that it has."""
        if not self.reserves:
            return
        name, request = str(one.number), one.task.request(self.run.policy)
        hosts = self._decider.worth_waiting_for(request, COMPARED, name)
        found = [self._wait_for(one, host) for host in dict.fromkeys([*hosts, *([one.host] if one.host else [])])]
        waits = [wait for wait in found if wait is not None]
        most = len(self.columns) * Settings().reserved_hosts_percent // 100
        if not waits or (not one.host and len(self.columns.reserved) >= most):
            return
        best = min(waits, key=lambda wait: wait.rank(wait.host == one.host))
        if best.host != one.host:
            self._take(one, best)

    def offer(self, host: str, waiting: Iterable[_Waiting]) -> None:
        """Let the first task that waits, and that a host suits clearly better than its own, have it; and so on."""
        for one in waiting if self.reserves else ():
            new = self._wait_for(one, host)
            now = self._wait_for(one, one.host) if one.host else None
            row = self.columns.row(host)
            assert row is not None
            if (
                new is not None
                and self.columns.reserved.get(row) is None
                and (now is None or new.unlimited < now.unlimited - 1)
            ):
                before = one.host
                self._take(one, new)
                if before:
                    self.offer(before, waiting)
                return

    def _take(self, one: _Waiting, wait: Wait) -> None:
        self._drop(one)
        kept = {f"kept.{slot}": str(amount) for slot, amount in wait.amounts.items()}
        self._set(wait.host, {"reservation": str(one.number), **kept})
        one.host = wait.host

    def _wait_for(self, one: _Waiting, host: str) -> Wait | None:
        claims = list(self.on_host.get(host, {}).values())
        return self._decider.wait_for(one.task.request(self.run.policy), host, claims, 0)

    def end_reservation(self, one: _Waiting, waiting: Iterable[_Waiting]) -> None:
        """End the reservation of a task, if it has one, and offer its host to those that wait."""
        host = one.host
        self._drop(one)
        if host:
            self.offer(host, waiting)

    def _drop(self, one: _Waiting) -> None:
        row = self.columns.row(one.host)
        kept = self.columns.reserved.get(row) if row is not None else None
        if kept is not None:
            self._set(one.host, {"reservation": "", **{f"kept.{slot}": "" for slot in kept.amounts}})
        one.host = ""

    def _set(self, host: str, fields: Mapping[str, str]) -> None:
        version = self.columns.version(host)
        assert version is not None
        self.columns.patch(host, {**fields, "version": str(version + 1)})

    def placed_again(self, one: _Waiting) -> Candidate | None:
        """Try to place a task that waits."""
        with self.columns.without_reserved(list(self.columns.reserved.of(str(one.number)))):
            return self.place([one.task])[0]

    def may_take(self, host: str, one: _Waiting) -> bool:
        """Return whether a host has enough CPU, memory and GPUs left for a task, to save most of the decisions."""
        row = self.columns.row(host)
        assert row is not None
        own = self.columns.reserved.get(row) if one.host == host else None
        kept: Mapping[str, int] = own.amounts if own is not None else {}

        def free(slots: Sequence[str]) -> list[int]:
            families = self.columns.capacity, self.columns.claimed, self.columns.external
            numbers = zip(slots, *(family.at(row, slots) for family in families), strict=True)
            return [capacity - claimed - external + kept.get(slot, 0) for slot, capacity, claimed, external in numbers]

        amounts = one.task.amounts
        if any(left < amount for left, amount in zip(free([*amounts]), amounts.values(), strict=True)):
            return False
        shares = one.task.shares
        return not shares or sum(left >= shares[0] for left in free(self._gpus)) >= len(shares)

    @property
    def _gpus(self) -> list[str]:
        return [slot for slot in self.columns.capacity if is_gpu(slot)]


class Churn:
    """One run. Its steps are numbered; a task is named by the step in which it was requested."""

    def __init__(
        self, nodes: Sequence[Node], tasks: Sequence[Task], run: Run, wait: float, reserves: bool, in_order: bool
    ) -> None:
        self._tasks = tasks
        self._rng = Random(run.seed + 1)
        self._fleet = fleet = ReservingFleet(make_columns(nodes), run, Random(run.seed), reserves=reserves)
        self._total = gpu_milli(fleet.columns)[1]
        self._warm_up = sequence(tasks, self._total, run.seed)
        self._lifetime = len(self._warm_up)
        self._is_in_order = in_order
        self._wait = round(wait * self._lifetime)
        self._offered: list[int] = []
        self._where: dict[int, Candidate] = {}
        self._large: dict[int, _Waiting] = {}
        """The tasks for 8 GPUs that wait."""
        self._small: dict[Hashable, dict[int, _Waiting]] = {}
        """The others that wait, by what they ask for: of equal ones only the first is tried."""
        self.waits: list[float] = []
        self.refused = 0
        self.parts: list[float] = []

    def play(self) -> None:
        """Play the warm-up and the steps after it."""
        for step, task in enumerate(self._warm_up):
            self._offered.append(step)
            self._request(step, task)
        for step in range(self._lifetime, (1 + FURTHER) * self._lifetime):
            self._end_one(step)
            self._give_up(step)
            self._offered.append(step)
            self._request(step, self._rng.choice(self._tasks))
            self.parts.append(self._fleet.allocated / self._total)

    def _request(self, step: int, task: Task) -> None:
        where, is_large = self._fleet.place([task])[0], len(task.shares) == LARGE
        if where is not None:
            self._hold(step, where)
        elif self._wait and is_large:
            self._large[step] = _Waiting(step, task, step)
            self._fleet.reserve(self._large[step])
            return
        elif self._wait:
            self._small.setdefault(_shape(task), {})[step] = _Waiting(step, task, step)
        if is_large:
            self._note(step, 0.0 if where is not None else None)

    def _hold(self, number: int, where: Candidate) -> None:
        self._where[number] = where
        self._fleet.hold(number, where)

    def _note(self, requested: int, wait: float | None) -> None:
        """Note how long a large task waited, or with None that it was refused."""
        if requested < self._lifetime:
            return
        if wait is None:
            self.refused += 1
        else:
            self.waits.append(wait / self._lifetime)

    def _end_one(self, step: int) -> None:
        """End a random task, placed or not; tasks for 8 GPUs that wait go on waiting."""
        while (number := self._offered[at := self._rng.randrange(len(self._offered))]) in self._large:
            pass
        self._offered[at] = self._offered[-1]
        self._offered.pop()
        if (where := self._where.pop(number, None)) is not None:
            self._fleet.end(number, where)
            self._place_waiting(step, where.host)
            return
        for alike in self._small.values():
            alike.pop(number, None)

    def _place_waiting(self, step: int, host: str) -> None:
        """Place tasks that wait on a host that another one has left, the earliest first, as long as some fit."""
        while found := self._first_that_fits(host):
            one, where = found
            self._hold(one.number, where)
            if self._large.pop(one.number, None):
                self._fleet.end_reservation(one, self._large.values())
                self._note(one.number, step - one.since)
            else:
                del self._small[_shape(one.task)][one.number]

    def _first_that_fits(self, host: str) -> tuple[_Waiting, Candidate] | None:
        for one in self._in_turn():
            if self._fleet.may_take(host, one) and (where := self._fleet.placed_again(one)) is not None:
                return one, where
        return None

    def _in_turn(self) -> list[_Waiting]:
        """Return the tasks that wait, in the order in which they are tried; of equal small ones only the first."""
        first = [(next(iter(alike.values())), len(alike)) for alike in self._small.values() if alike]
        waiting = [*((one, 1) for one in self._large.values()), *first]
        if self._is_in_order:
            return sorted((one for one, _ in waiting), key=lambda one: one.number)
        # The highest of as many random numbers as there are equal tasks.
        turns = {one.number: self._rng.random() ** (1 / count) for one, count in waiting}
        return sorted((one for one, _ in waiting), key=lambda one: -turns[one.number])

    def _give_up(self, step: int) -> None:
        for one in [*self._large.values()]:
            if step - one.since >= self._wait:
                del self._large[one.number]
                self._fleet.end_reservation(one, self._large.values())
                self._note(one.number, None)
            elif (step - one.since) % max(1, self._lifetime // RENEWALS) == 0:
                self._fleet.reserve(one)


def _shape(task: Task) -> Hashable:
    return tuple(task.amounts.items()), task.shares, task.models


def churn(
    nodes: Sequence[Node],
    tasks: Sequence[Task],
    run: Run,
    wait: float,
    name: str = "",
    reserves: bool = True,
    in_order: bool = False,
) -> Waited:
    """Play one run."""
    one = Churn(nodes, tasks, run, wait, reserves, in_order)
    one.play()
    placed, percent = len(one.waits), 100.0 * mean(one.parts)
    return Waited(
        name,
        run.policy,
        run.seed,
        wait,
        placed + one.refused,
        placed,
        mean(one.waits or [0.0]),
        percent,
        reserves,
        in_order,
    )


def print_row(one: Waited) -> None:
    """Print one run."""
    how = f"with{'' if one.reserves else 'out'} reservations{', in order' if one.in_order else ''}"
    part = 100 * one.large_placed / max(1, one.large)
    print(
        f"{one.tasks:<12} {one.policy} seed {one.seed}, waiting {one.wait:g} {how}: {one.large_placed} of {one.large} "
        f"tasks for {LARGE} GPUs placed ({part:.0f} %), after {one.mean_wait:.2f}; {one.percent:.2f} % allocated",
        flush=True,
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("nodes", help="node list (CSV)")
    parser.add_argument("tasks", nargs="+", help="task lists (CSV)")
    parser.add_argument("--policy", default="gpu", help="the weighing policy")
    parser.add_argument("--seed", type=int, nargs="+", default=[42], help="one run for each")
    parser.add_argument("--wait", type=float, nargs="+", default=[0.0, 0.5, 1.0, 2.0], help="in lifetimes of a task")
    parser.add_argument("--no-reserve", action="store_true", help="wait without reserving a host")
    parser.add_argument("--in-order", action="store_true", help="those that wait are tried in order of arrival")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    with open(given.nodes, newline="") as lines:
        nodes = read_nodes(lines)
    results = list[Waited]()
    for path in given.tasks:
        with open(path, newline="") as lines:
            tasks = read_tasks(lines)
        settings, name = settings_for(tasks, 1, learns=False), Path(path).stem.rpartition("_")[2]
        for seed, wait in itertools.product(given.seed, given.wait):
            run = Run(given.policy, seed, settings)
            results.append(churn(nodes, tasks, run, wait, name, not given.no_reserve, given.in_order))
            if not given.json:
                print_row(results[-1])
    if given.json:
        print(json.dumps([asdict(one) for one in results]))


if __name__ == "__main__":
    main()
