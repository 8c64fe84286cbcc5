"""Time per decision under every kind of constraint, compared with a plain loop over the same hosts in the same run.

    python -m benchmarks.constraints [--hosts 10000] [--seconds 2] [--most 500] [--case NAME ...] [--json]

Each case (benchmarks/constraint_cases.py) has a fleet of its own: large hosts with NUMA nodes, GPUs and network cards.

    repeated   the same request again and again, with the claim of each decision applied before the next
    new shape  every request has different amounts, so that nothing is cached from an earlier one
    loop       a plain loop over the hosts (benchmarks/plain_constraints.py), with its claims applied

Before a measurement both decide the same requests one after the other, and must choose the same host each time. For
gangs, which have many good solutions, each placement is checked against the request instead. Times are processor times
of deciding alone, without applying the claims: deciding waits for nothing, and others may share the machine.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from random import Random
from statistics import median

from benchmarks.constraint_cases import CASES, Case
from benchmarks.decide import EPOCH, Fleet, no_room
from benchmarks.fleet_of_pools import GROUPS, Counts, PlainFleet, make_cell, make_counts, make_fleet, make_plain
from benchmarks.plain_constraints import decide
from benchmarks.plain_gangs import Placed, claim, place_gang, wrong_places
from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.model import Request
from redsched.settings import Settings
from redsched.store.codec.replies import HostUsage

AGREED = 20
"""Decisions that both make one after the other before a measurement."""
FEWEST = 3
"""The minimum number of decisions for a median, however long they take."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One row: medians of single decisions in microseconds, and the number of decisions."""

    hosts: int
    case: str
    repeated_us: float
    repeated: int
    new_shape_us: float
    new_shapes: int
    loop_us: float
    loops: int


class Ours:
    """Deciding by redsched. Picks the best host instead of one of the best few, to choose as the loop does."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._decider = Decider(columns, Settings(pick_from=1, metrics_weights={"cpu.percent": -1.0}))
        self._rng = Random(0)

    def decide(self, request: Request) -> list[Placed]:
        places = self._decider.decide(request, self._rng).places or no_room()
        return [Placed(one.chosen.host, one.chosen.amounts, one.member) for one in places]

    def claim(self, request: Request, places: Sequence[Placed]) -> None:
        for one in places:
            self._claim(one, request.server_group)

    def _claim(self, placed: Placed, group: str) -> None:
        columns, host = self._columns, placed.host
        row, version = columns.row(host), columns.version(host)
        assert row is not None
        assert version is not None
        claimed = {slot: columns.claimed[slot].item(row) + amount for slot, amount in placed.amounts.items()}
        claims, starting = columns.claims.item(row) + 1, columns.starting.item(row) + 1
        assert columns.from_reply(HostUsage(host, version + 1, "", claimed, claims, starting), EPOCH)
        if group:
            domains = {by: columns.domain(by, row) for by in GROUPS[group][2]}
            columns.declared.place(group, host, domains)


class Loop:
    """Deciding by plain loops."""

    def __init__(self, fleet: PlainFleet) -> None:
        self.fleet = fleet

    def decide(self, request: Request) -> list[Placed]:
        if request.members:
            return place_gang(self.fleet, request) or no_room()
        found = decide(self.fleet, request) or no_room()
        return [Placed(*found[0])]

    def claim(self, request: Request, places: Sequence[Placed]) -> None:
        for one in places:
            claim(self.fleet, one, request.server_group)


def agree(case: Case, ours: Ours, loop: Loop, decisions: int) -> None:
    """Check that both decide alike: otherwise the figures compare different work. Our choice is claimed in both."""
    request = case.request(0)
    for _ in range(decisions):
        places, plain = ours.decide(request), loop.decide(request)
        wrong = wrong_places(loop.fleet, request, places) + wrong_places(loop.fleet, request, plain)
        if not request.members and places[0].host != plain[0].host:
            wrong.append(f"redsched chose {places[0].host}, the loop {plain[0].host}")
        if wrong:
            raise SystemExit(f"{case.name}: the figures would mean nothing: {'; '.join(wrong[:3])}")
        ours.claim(request, places)
        loop.claim(request, places)


def timed(
    ask: Callable[[int], Request], by: Ours | Loop, seconds: float, most: int, claims: bool = True
) -> tuple[float, int]:
    """Return the median processor time of a decision in microseconds, and the number of decisions."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < min(FEWEST, most) or (len(times) < most and time.perf_counter() < end):
        request = ask(len(times) + 1)
        start = time.thread_time()
        places = by.decide(request)
        times.append(time.thread_time() - start)
        if claims:
            by.claim(request, places)
    return median(times) * 1e6, len(times)


def measure(case: Case, fleet: Fleet, counts: dict[str, Counts], seconds: float, most: int) -> Measured:
    """Measure one case on a fleet of its own."""
    ours, loop = Ours(make_cell(fleet, counts)), Loop(make_plain(fleet, counts))
    agree(case, ours, loop, min(AGREED, most))
    request = case.request(0)
    new_shape = timed(case.request, ours, seconds, most, claims=False)
    repeated = timed(lambda _: request, ours, seconds, most)
    plain = timed(lambda _: request, loop, seconds, most)
    return Measured(len(fleet), case.name, *repeated, *new_shape, *plain)


def run(hosts: int, seconds: float, most: int, names: Sequence[str] = ()) -> Iterator[Measured]:
    """Yield all cases, or those with these names, each as soon as it is measured."""
    rng = Random(hosts)
    fleet = make_fleet(hosts, rng)
    counts = make_counts(fleet, rng)
    for case in CASES:
        if not names or case.name in names:
            yield measure(case, fleet, counts, seconds, most)


def print_table(results: Iterable[Measured]) -> None:
    """Print the table."""
    print(f"Python {platform.python_version()}, one process, one thread; medians in us, and of how many decisions")
    heads = ("hosts", "case", "repeated", "of", "new shape", "of", "loop", "of", "loop/repeated", "loop/new")
    print("{:>6}  {:<24} {:>9} {:>5} {:>10} {:>5} {:>9} {:>4} {:>14} {:>9}".format(*heads))
    for one in results:
        print(
            f"{one.hosts:>6}  {one.case:<24} {one.repeated_us:>9.0f} {one.repeated:>5} {one.new_shape_us:>10.0f} "
            f"{one.new_shapes:>5} {one.loop_us:>9.0f} {one.loops:>4} {one.loop_us / one.repeated_us:>14.1f} "
            f"{one.loop_us / one.new_shape_us:>9.1f}",
            flush=True,
        )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=10_000, help="size of the fleet, from 100")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each figure is measured at most")
    parser.add_argument("--most", type=int, default=500, help="and of how many decisions at most")
    parser.add_argument("--case", nargs="+", default=[], choices=[case.name for case in CASES], help="only these")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    results = run(given.hosts, given.seconds, given.most, given.case)
    if given.json:
        print(json.dumps([asdict(one) for one in results]))
    else:
        print_table(results)


if __name__ == "__main__":
    main()
