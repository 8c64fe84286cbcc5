"""Decisions per second in one process, compared with a plain loop over the same hosts. Measures deciding alone.

    python -m benchmarks.decide [--hosts 1000 10000 100000] [--seconds 2] [--json]

Four kinds of work at every fleet size, on hosts of the same kind with different usage:

    repeated   the same request repeatedly; each decision's claim is applied to its host before the next
    new shape  every request has different amounts, so that nothing is cached from an earlier one
    refused    every request has different amounts, too large for any host; with the explanation of the refusal
    loop       a Python loop over all hosts with the same rules and the same score, then the best host; with the
               claim applied, as in `repeated`

The table gives the median of single decisions, and decisions per second over the whole run, including the claims.
`step` is the median of the longest part of a decision during which no other task of the process can run.
"""

import argparse
import heapq
import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from random import Random
from statistics import median
from typing import NoReturn

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.model import Request
from redsched.scheduler.selection.refusal import MAX_TESTS
from redsched.settings import Settings
from redsched.store.codec.replies import HostUsage

EPOCH = "1-a"
AMOUNTS = {"VCPU": 2, "MEMORY_MB": 4096}
REQUIRED = frozenset({"HW_CPU_X86_AVX2"})
Fleet = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Measured:
    """One line of the table; times in microseconds."""

    hosts: int
    work: str
    decisions: int
    median_us: float
    step_us: float
    per_second: float


def make_fleet(hosts: int, rng: Random) -> Fleet:
    """Return hosts as fields of the store: three zones, four in five with the trait, up to half full."""
    return {f"h{number:06d}": make_host(number, rng) for number in range(hosts)}


def make_host(number: int, rng: Random) -> dict[str, str]:
    fields = {"version": "1", "epoch": EPOCH, "status": "enabled", "alive": "1", "zone": f"az{number % 3}"}
    if number % 5:
        fields["trait.HW_CPU_X86_AVX2"] = "1"
    for slot, capacity in (("VCPU", 4096), ("MEMORY_MB", 16_777_216), ("DISK_GB", 64_000)):
        fields |= {
            f"capacity.{slot}": str(capacity),
            f"claimed.{slot}": str(rng.randrange(capacity // 2)),
            f"external.{slot}": str(rng.randrange(capacity // 20)),
        }
    return fields


def make_columns(fleet: Fleet) -> Columns:
    columns = Columns(len(fleet))
    columns.set_epoch(EPOCH)
    for host, fields in fleet.items():
        columns.put(host, fields)
    return columns


@dataclass(slots=True)
class PlainHost:
    """The loop's view of a host: parsed numbers, so that it spends its time on deciding and not on parsing."""

    name: str
    alive: bool
    attested: bool
    status: str
    zone: str
    traits: frozenset[str]
    capacity: dict[str, int]
    claimed: dict[str, int]
    external: dict[str, int]


def make_plain(fleet: Fleet) -> dict[str, PlainHost]:
    def by_slot(fields: dict[str, str], kind: str) -> dict[str, int]:
        return {key.partition(".")[2]: int(value) for key, value in fields.items() if key.startswith(kind + ".")}

    return {
        name: PlainHost(
            name,
            fields["alive"] == "1",
            fields["epoch"] == EPOCH,
            fields["status"],
            fields["zone"],
            frozenset(key.removeprefix("trait.") for key in fields if key.startswith("trait.")),
            *(by_slot(fields, kind) for kind in ("capacity", "claimed", "external")),
        )
        for name, fields in fleet.items()
    }


def plain_score(host: PlainHost, request: Request) -> float | None:
    """Return the score of one host, None if it does not fit; tests only the rules that the request needs."""
    if not (host.alive and host.attested and host.status == "enabled" and request.required <= host.traits):
        return None
    total = 0.0
    for slot, amount in request.resources.items():
        left = host.capacity.get(slot, 0) - host.claimed.get(slot, 0) - host.external.get(slot, 0)
        if amount > left:
            return None
        total += (left - amount) / host.capacity[slot]
    return total / len(request.resources)


def plain_decide(hosts: dict[str, PlainHost], request: Request, candidates: int) -> list[str]:
    scores = ((plain_score(host, request), host.name) for host in hosts.values())
    best = heapq.nsmallest(candidates, ((-score, name) for score, name in scores if score is not None))
    return [name for _, name in best] or no_room()


def no_room() -> NoReturn:
    """Exit: a refusal is different work from what the table shows."""
    raise SystemExit("the fleet is full: measure for fewer --seconds")


def first_host(decider: Decider, request: Request, rng: Random) -> str:
    places = decider.decide(request, rng).places
    return places[0].chosen.host if places else no_room()


def repeated(fleet: Fleet, settings: Settings | None = None) -> Callable[[], str]:
    """Repeat one request and apply its claim. Picks the best host, not one of the best few, as the loop does."""
    columns, rng, request = make_columns(fleet), Random(0), Request(AMOUNTS, required=REQUIRED)
    decider = Decider(columns, settings or Settings(pick_from=1))

    def once() -> str:
        host = first_host(decider, request, rng)
        row, version = columns.row(host), columns.version(host)
        assert row is not None
        assert version is not None
        claimed = {slot: columns.claimed[slot].item(row) + amount for slot, amount in AMOUNTS.items()}
        assert columns.from_reply(HostUsage(host, version + 1, "", claimed, 1, 1), EPOCH)
        return host

    return once


def new_shape(fleet: Fleet, settings: Settings | None = None) -> Callable[[], str]:
    columns, rng = make_columns(fleet), Random(0)
    decider, asked = Decider(columns, settings or Settings(pick_from=1)), iter(range(1, 10**9))

    def once() -> str:
        request = Request({"VCPU": 2, "MEMORY_MB": next(asked)}, required=REQUIRED)
        return first_host(decider, request, rng)

    return once


def refused(fleet: Fleet) -> Callable[[], float]:
    """Refuse and explain requests as a scheduler does. Returns the longest step of each in seconds."""
    columns, rng = make_columns(fleet), Random(0)
    decider, asked = Decider(columns, Settings(pick_from=1)), iter(range(10**9, 2 * 10**9))

    def once() -> float:
        request = Request({"VCPU": 2, "MEMORY_MB": next(asked)}, required=REQUIRED)
        longest, start = 0.0, time.perf_counter()
        assert not decider.decide(request, rng).places
        for _ in decider.refusal_steps(request, MAX_TESTS):
            longest, start = max(longest, time.perf_counter() - start), time.perf_counter()
        return max(longest, time.perf_counter() - start)

    return once


def loop(fleet: Fleet) -> Callable[[], str]:
    hosts, request = make_plain(fleet), Request(AMOUNTS, required=REQUIRED)

    def once() -> str:
        host = plain_decide(hosts, request, Settings().candidates)[0]
        for slot, amount in AMOUNTS.items():
            hosts[host].claimed[slot] += amount
        return host

    return once


def measure(hosts: int, work: str, once: Callable[[], str | float], seconds: float) -> Measured:
    times: list[float] = []
    steps: list[float] = []
    began = time.perf_counter()
    while (start := time.perf_counter()) - began < seconds or not times:
        longest = once()
        times.append(time.perf_counter() - start)
        steps.append(longest if isinstance(longest, float) else times[-1])
    per_second = len(times) / (time.perf_counter() - began)
    return Measured(hosts, work, len(times), median(times) * 1e6, median(steps) * 1e6, per_second)


def agree(fleet: Fleet, decisions: int = 200) -> None:
    """Check that both choose the same hosts one after the other: otherwise the figures would compare different work."""
    ours, plain = repeated(fleet), loop(fleet)
    if [ours() for _ in range(decisions)] != [plain() for _ in range(decisions)]:
        raise SystemExit("the columns and the plain loop chose different hosts: the figures would mean nothing")


WORKS: Mapping[str, Callable[[Fleet], Callable[[], str | float]]] = {
    "repeated": repeated,
    "new shape": new_shape,
    "refused": refused,
    "loop": loop,
}


def run(sizes: list[int], seconds: float) -> list[Measured]:
    """Run all measurements."""
    results = []
    for hosts in sizes:
        fleet = make_fleet(hosts, Random(hosts))
        agree(fleet)
        for work, make in WORKS.items():
            results.append(measure(hosts, work, make(fleet), seconds))
    return results


def print_table(results: list[Measured]) -> None:
    loops = {result.hosts: result for result in results if result.work == "loop"}
    print(f"Python {platform.python_version()}, one process, one thread")
    heads = ("hosts", "work", "decisions", "median us", "step us", "per second", "times loop")
    print("{:>8}  {:<10} {:>10} {:>11} {:>9} {:>11} {:>11}".format(*heads))
    for one in results:
        ratio = one.per_second / loops[one.hosts].per_second
        print(
            f"{one.hosts:>8}  {one.work:<10} {one.decisions:>10} {one.median_us:>11.1f} {one.step_us:>9.1f} "
            f"{one.per_second:>11.0f} {ratio:>11.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[1000, 10_000, 100_000], help="fleet sizes")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each kind of work runs")
    parser.add_argument("--json", action="store_true", help="for programs")
    arguments = parser.parse_args()
    results = run(arguments.hosts, arguments.seconds)
    if arguments.json:
        print(json.dumps([asdict(result) for result in results]))
    else:
        print_table(results)


if __name__ == "__main__":
    main()
