"""Several scheduler processes on one fleet and one store: how much they disturb each other, and how they keep up.

    python -m benchmarks.schedulers [--schedulers 1 2 4 8] [--pick-from 1 2 4 8] [--candidates 4 8 16]
        [--policy pack spread] [--hosts 100] [--follow 1000 5000] [--seconds 10] [--json]

For each combination, the processes claim three fifths of a fleet of equal hosts together, each with four selections in
flight and its own random requests. Then they claim eight VCPU at a time until they are refused.

    per s         claims a second of all processes together, and processor time of a scheduler for a claim
    passed over   candidates for each claim that the script found taken in the meantime: a conflict that costs nothing
    rounds        further calls for each claim, because all candidates were taken: a conflict that costs a decision
    wrong         refusals although a host had room: must be 0
    quality       pack: hosts in use for each host that the claims would fill exactly; spread: the standard deviation of
                  the VCPU claimed on a host, of which 0 is best in theory

With --follow, one scheduler that decides nothing follows a feed of so many changes a second, each of which has the
fields of a claim: its processor time, and the delay until a change is in its replica. Ends with exit code 1 after a
wrong refusal.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import uvloop

from benchmarks import following
from benchmarks.claim_work import HELD_S
from benchmarks.competing import LAST, SHAPES, Counts, Share, serve
from benchmarks.running import end_in_order
from redsched import aio, logs
from redsched.agent.collectors.fleet import simulated
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store

FILLED = 0.6
HOST_VCPU = 64
AT_ONCE = 100
TIMEOUT_S = 300.0
QUIET = {"check_s": 0.0, "events_keep_s": 0.0}


@dataclass(frozen=True, slots=True)
class Row:
    """One combination, and what was counted in it."""

    policy: str
    schedulers: int
    pick_from: int
    candidates: int
    claims: int
    per_second: float
    cpu_us: float
    passed_over: float
    further_rounds: float
    wrong_refusals: int
    quality: float


class Fleet:
    """The hosts in the store."""

    def __init__(self, url: str, hosts: int) -> None:
        self._url, self._hosts = url, hosts

    def renew(self) -> None:
        """Empty the store, and report the hosts."""
        uvloop.run(self._renew())

    def free(self) -> list[tuple[int, int]]:
        """Return the free VCPU and MEMORY_MB of each host."""
        return uvloop.run(self._free())

    async def _renew(self) -> None:
        async with Store.connect(self._url, Settings(**QUIET)) as store:
            cell = store.cell("c1")
            await cell._cell.outside.flushall()
            await cell.init()
            reports = simulated(self._hosts, lease_s=HELD_S)
            for first in range(0, len(reports), AT_ONCE):
                page = reports[first : first + AT_ONCE]
                await aio.gather(cell.hosts.report(one) for one in page)
                await aio.gather(cell.hosts.attest(one.name, "") for one in page)

    async def _free(self) -> list[tuple[int, int]]:
        async with Store.connect(self._url, Settings(**QUIET)) as store:
            hosts = store.cell("c1").hosts
            fields = [one.fields for one in await hosts.read(await hosts.names())]
        return [(_free_of(one, "VCPU"), _free_of(one, "MEMORY_MB")) for one in fields]


def _free_of(fields: Any, slot: str) -> int:
    return int(fields[f"capacity.{slot}"]) - int(fields.get(f"claimed.{slot}", "0"))


@contextmanager
def processes(count: int) -> Iterator[list[Any]]:
    """Yield connections to this many processes, which end with the context."""
    context = multiprocessing.get_context("spawn")
    pairs = [context.Pipe() for _ in range(count)]
    started = [context.Process(target=serve, args=(theirs,), daemon=True) for _, theirs in pairs]
    for one in started:
        one.start()
    try:
        yield [ours for ours, _ in pairs]
        for ours, _ in pairs:
            ours.send(None)
        for one in started:
            one.join(TIMEOUT_S)
    finally:
        for one in started:
            one.kill()


def compete(fleet: Fleet, url: str, schedulers: Sequence[Any], policy: str, pick_from: int, candidates: int) -> Row:
    """Run one combination."""
    fleet.renew()
    hosts = len(fleet.free())
    mean_vcpu = statistics.mean(vcpu for vcpu, _ in SHAPES)
    share = int(hosts * HOST_VCPU * FILLED / mean_vcpu / len(schedulers))
    settings = {**QUIET, "policy": policy, "pick_from": pick_from, "candidates": candidates}
    for number, one in enumerate(schedulers):
        one.send(Share(url, settings, share, number))
    counts = _all_at_once(schedulers)
    free = [vcpu for vcpu, _ in fleet.free()]
    refused = sum(one.refused for one in _all_at_once(schedulers))
    has_room = any(vcpu >= LAST[0] and memory >= LAST[1] for vcpu, memory in fleet.free())
    claims = sum(one.claims for one in counts)
    return Row(
        policy,
        len(schedulers),
        pick_from,
        candidates,
        claims,
        claims / max(one.seconds for one in counts),
        sum(one.cpu_s for one in counts) / claims * 1e6,
        sum(one.passed_over for one in counts) / claims,
        sum(one.further_rounds for one in counts) / claims,
        sum(one.refused_early for one in counts) + (refused if has_room else 0),
        _quality(policy, [HOST_VCPU - vcpu for vcpu in free]),
    )


def _all_at_once(schedulers: Sequence[Any]) -> list[Counts]:
    """Start all processes when each is ready, and return their counts."""
    for one in schedulers:
        _receive(one)
    for one in schedulers:
        one.send("go")
    return [_receive(one) for one in schedulers]


def _receive(one: Any) -> Any:
    if not one.poll(TIMEOUT_S):
        raise SystemExit("a scheduler process does not answer")
    return one.recv()


def _quality(policy: str, used: Sequence[int]) -> float:
    if policy == "pack":
        return sum(one > 0 for one in used) / (sum(used) / HOST_VCPU)
    return statistics.pstdev(used)


def print_rows(rows: Sequence[Row]) -> None:
    """Print a table of the rows."""
    heads = ("policy", "schedulers", "pick_from", "candidates", "claims", "per s", "CPU us", "passed over")
    print(*heads, "rounds", "wrong", "quality", sep="  ")
    for row in rows:
        print(
            f"{row.policy:<6}  {row.schedulers:>10}  {row.pick_from:>9}  {row.candidates:>10}  {row.claims:>6}  "
            f"{row.per_second:>5.0f}  {row.cpu_us:>6.0f}  {row.passed_over:>11.3f}  {row.further_rounds:>6.3f}  "
            f"{row.wrong_refusals:>5}  {row.quality:>7.2f}"
        )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--schedulers", type=int, nargs="*", default=[1, 2, 4, 8], help="processes; without any, none")
    parser.add_argument("--pick-from", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--candidates", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--policy", nargs="+", default=["pack", "spread"], choices=["pack", "spread"])
    parser.add_argument("--hosts", type=int, default=100, help="size of the fleet")
    parser.add_argument("--follow", type=int, nargs="*", default=[1000, 5000], help="changes a second to follow")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each feed is followed")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    end_in_order()
    logs.configure("error")
    rows = list[Row]()
    with PrivateServer.start() as server:
        fleet = Fleet(server.url, given.hosts)
        if given.schedulers:
            with processes(max(given.schedulers)) as ready:
                for combination in itertools.product(given.policy, given.schedulers, given.pick_from, given.candidates):
                    policy, count, pick_from, candidates = combination
                    rows.append(compete(fleet, server.url, ready[:count], policy, pick_from, candidates))
                    print(rows[-1], file=sys.stderr)
        followed = [following.measure(server, fleet.renew, rate, given.seconds) for rate in given.follow]
    load = os.getloadavg()[0]
    if given.json:
        print(json.dumps({"load": load, "rows": [*map(asdict, rows)], "followed": [*map(asdict, followed)]}))
    else:
        print(f"{os.cpu_count()} cores, load {load:.1f}")
        print_rows(rows)
        following.print_rows(followed)
    sys.exit(1 if any(row.wrong_refusals for row in rows) else 0)


if __name__ == "__main__":
    main()
