"""What it costs a decision to spare the hosts of scarce classes.

    python -m benchmarks.sparing [--hosts 1000 10000] [--decisions 5000] [--same] [--json]

Two deciders, with `REDSCHED_SPARE_UP_TO` at its default and at 0, take turns on copies of one fleet, decision by
decision; every other pair begins with the other one. In the fleet `no gpus` all hosts have the same classes, and
in `gpus` every twentieth has a GPU. The works are those of `benchmarks.decide`: the same request again and again with
its claim, and a new shape each time. The times are processor time in microseconds for one decision, as medians, and
`cost` is the median of what one took more than its pair. `--same` compares two that spare nothing: what it prints is
noise.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from random import Random
from statistics import median

from benchmarks.decide import Fleet, make_fleet, new_shape, repeated
from redsched.settings import Settings

EVERY = 20
"""One of so many hosts has a GPU."""
GPU = {"pool.gpu0": "/", "capacity.gpu0/CUSTOM_GPU_MILLI": "1000"}
WORKS: Mapping[str, Callable[[Fleet, Settings], Callable[[], str]]] = {"repeated": repeated, "new shape": new_shape}


@dataclass(frozen=True, slots=True)
class Compared:
    """One work on one fleet: processor time of a decision in us, with sparing and without, and what it adds."""

    hosts: int
    fleet: str
    work: str
    sparing_us: float
    without_us: float
    cost_us: float


def with_gpus(fleet: Fleet) -> Fleet:
    """Return the fleet with a GPU on some hosts."""
    return {name: fields | (GPU if number % EVERY == 0 else {}) for number, (name, fields) in enumerate(fleet.items())}


def us(once: Callable[[], str]) -> float:
    """Return the processor time of a decision."""
    start = time.thread_time_ns()
    once()
    return (time.thread_time_ns() - start) / 1000


def compare(fleet: Fleet, name: str, work: str, decisions: int, up_to: float) -> Compared:
    """Let two deciders take turns."""
    both = [WORKS[work](fleet, Settings(pick_from=4, spare_up_to=one)) for one in (up_to, 0.0)]
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(decisions):
        for one in (0, 1) if number % 2 else (1, 0):
            times[one].append(us(both[one]))
    # The machine may slow down or be busy for a while, but then with both.
    cost = median(sparing - without for sparing, without in zip(*times, strict=True))
    sparing_us, without_us = map(median, times)
    return Compared(len(fleet), name, work, sparing_us, without_us, cost)


def run(sizes: list[int], decisions: int, up_to: float) -> Iterator[Compared]:
    """Yield all comparisons."""
    for hosts in sizes:
        plain = make_fleet(hosts, Random(hosts))
        for name, fleet in (("no gpus", plain), ("gpus", with_gpus(plain))):
            for work in WORKS:
                yield compare(fleet, name, work, decisions, up_to)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[1000, 10_000], help="fleet sizes")
    parser.add_argument("--decisions", type=int, default=5000, help="decisions of each")
    parser.add_argument("--same", action="store_true", help="compare two without, for the noise")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    up_to = 0.0 if given.same else Settings().spare_up_to
    results = list(run(given.hosts, given.decisions, up_to))
    if given.json:
        print(json.dumps([asdict(one) for one in results]))
        return
    heads = ("hosts", "fleet", "work", "sparing us", "without us", "cost us")
    print("{:>8}  {:<8} {:<10} {:>11} {:>11} {:>8}".format(*heads))
    for one in results:
        row = f"{one.hosts:>8}  {one.fleet:<8} {one.work:<10} {one.sparing_us:>11.1f} {one.without_us:>11.1f}"
        print(f"{row} {one.cost_us:>8.1f}")


if __name__ == "__main__":
    main()
