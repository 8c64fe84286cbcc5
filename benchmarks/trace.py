"""Replay a real cluster's work against redsched: the fleet through the agents' own code, the tasks over REST.

    python -m benchmarks.trace NODES.csv TASKS.csv [--clients 4] [--workers 2] [--policy spread] [--json]

The files are those of cluster-trace-gpu-v2023 (openb), which redsched does not include. Three phases run on one
`redsched up`:

    all      every task once, in the order of the file
    release  every second placed one is released; its host's agent ends it
    refused  the refused ones are requested again

`redsched audit` runs during and after each. Every error is reported, and makes the exit code 1: a wrong sum, an answer
that is not in the store, a claim that was not answered, a refusal while a host had room. The checks are plain Python
(benchmarks/trace_checks.py).
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.openb import Node, Task, fleet_text, read_nodes, read_tasks
from benchmarks.replay import Asked, Audits, place, release
from benchmarks.rest import Connection, connection_to, connections, metric, pages
from benchmarks.running import Up, end_in_order
from benchmarks.trace_checks import (
    false_refusals,
    gpu_shares,
    shortened,
    still_fitting,
    unanswered,
    wrong_claims,
    wrong_slots,
    wrong_sums,
)

SETTLE_TIMEOUT_S = 120.0
SETTLE_PAUSE_S = 0.5


@dataclass(slots=True)
class Phase:
    """The load and results of one phase of requests. Latencies in ms; `cpu_share`: of one core, by role, during it."""

    name: str
    asked: int
    placed: int
    refused: int
    refused_by: dict[str, int]
    asked_again: int
    retries: int
    gpu_milli: int
    of_gpu_milli: int
    seconds: float
    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    cpu_share: dict[str, float]


@dataclass(slots=True)
class Outcome:
    """All results."""

    hosts: int = 0
    up_s: float = 0.0
    phases: list[Phase] = field(default_factory=list)
    released: dict[int, int] = field(default_factory=dict)
    ended_s: float = 0.0
    audits: list[dict[str, int]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


class Trace:
    """One replay, phase by phase."""

    def __init__(self, up: Up, nodes: Sequence[Node], given: argparse.Namespace) -> None:
        self._up, self._nodes, self._given = up, nodes, given
        self._placed: dict[str, Asked] = {}
        self.audits = Audits([sys.executable, "-m", "redsched.cli", "audit", "--json", "--url", up.store])
        self.outcome = Outcome(hosts=len(nodes))

    async def ask(self, name: str, tasks: Sequence[Task]) -> list[Task]:
        """Run a phase of requests, and its checks; return the refused tasks."""
        held, before = dict(self._placed), await self._meters()
        async with self.audits.meanwhile(self._given.audit_pause), self._clients() as clients:
            started = time.perf_counter()
            asked = await place(clients, tasks, self._given.policy)
            seconds, after = time.perf_counter() - started, await self._meters()
        self._placed |= {one.task.name: one for one in asked if one.placed}
        hosts = await self._check()
        refused = [one.task for one in asked if one.refused]
        self._broken(unanswered(asked))
        self._broken(wrong_slots(self._nodes, self._placed.values()))
        self._broken(still_fitting(refused, hosts))
        self._broken(false_refusals(self._nodes, held, asked))
        spent = {role: round((after[role] - before[role]) / seconds, 2) for role in after if role != "retries"}
        retries = int(after["retries"] - before["retries"])
        self.outcome.phases.append(_phase(name, asked, seconds, retries, gpu_shares(hosts), spent))
        return refused

    async def release_half(self) -> None:
        """Release every second placed task once all of them run, and wait until their hosts have ended them."""
        await self._until_none(("claimed", "starting"))
        names = list(self._placed)[::2]
        started = time.perf_counter()
        async with self.audits.meanwhile(self._given.audit_pause), self._clients() as clients:
            self.outcome.released = dict(Counter(await release(clients, names)))
            await self._until_none(("ending",))
            self.outcome.ended_s = time.perf_counter() - started
        if set(self.outcome.released) - {202, 204}:
            self._broken([f"releases were answered {self.outcome.released}"])
        for name in names:
            del self._placed[name]
        await self._check()

    async def _check(self) -> list[dict[str, Any]]:
        """Audit, and compare the store with the answers; return the hosts."""
        await self.audits.once()
        async with connection_to(self._up.url) as reader:
            hosts = await pages(reader, "/v1/hosts", "hosts")
            claims = await pages(reader, "/v1/claims", "claims")
        self._broken([] if len(hosts) == len(self._nodes) else [f"{len(hosts)} of {len(self._nodes)} hosts are listed"])
        self._broken(wrong_claims(self._placed, claims))
        self._broken(wrong_sums(self._nodes, self._placed, hosts))
        return hosts

    async def _until_none(self, states: Sequence[str]) -> None:
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        async with connection_to(self._up.url) as reader:
            while any([await _has(reader, state) for state in states]):
                if time.monotonic() > deadline:
                    return self._broken([f"claims are still {' or '.join(states)} after {SETTLE_TIMEOUT_S:g} s"])
                await asyncio.sleep(SETTLE_PAUSE_S)
        return None

    async def _meters(self) -> dict[str, float]:
        own = os.times()
        async with connection_to(self._up.url) as reader:
            retries = await metric(reader, "redsched_retries_total")
        return {"clients": own.user + own.system, **self._up.cpu_s(), "retries": retries}

    def _clients(self) -> AbstractAsyncContextManager[list[Connection]]:
        return connections(self._up.url, self._given.clients, self._up.workers)

    def _broken(self, problems: Sequence[str]) -> None:
        self.outcome.broken += shortened(problems)


def _phase(
    name: str, asked: Sequence[Asked], seconds: float, retries: int, shares: tuple[int, int], spent: dict[str, float]
) -> Phase:
    cuts = statistics.quantiles((one.seconds * 1e3 for one in asked), n=100, method="inclusive")
    refused = [one for one in asked if one.refused]
    # The reason that excluded most hosts represents a refusal.
    by = Counter(max(one.reasons, key=one.reasons.__getitem__, default="?") for one in refused)
    again = sum(one.tries - 1 for one in asked)
    placed = sum(one.placed for one in asked)
    rate = len(asked) / seconds
    return Phase(
        name, len(asked), placed, len(refused), dict(by), again, retries, *shares, seconds, rate,
        cuts[49], cuts[94], cuts[98], spent,
    )  # fmt: skip


async def _has(reader: Connection, state: str) -> bool:
    return bool((await reader.request("GET", f"/v1/claims?limit=1&state={state}")).json()["claims"])


async def replay(up: Up, nodes: Sequence[Node], tasks: Sequence[Task], given: argparse.Namespace) -> Outcome:
    """Run all phases."""
    trace = Trace(up, nodes, given)
    refused = await trace.ask("all", tasks)
    await trace.release_half()
    if refused:
        await trace.ask("refused", refused)
    trace.outcome.audits = trace.audits.found
    trace.outcome.broken += shortened(trace.audits.problems)
    return trace.outcome


def run(given: argparse.Namespace) -> Outcome:
    """Start `redsched up` with the fleet, replay, and end it."""
    with open(given.nodes, newline="") as lines:
        nodes = read_nodes(lines)
    with open(given.tasks, newline="") as lines:
        tasks = read_tasks(lines)[: given.limit]
    with tempfile.TemporaryDirectory(prefix="redsched-trace-") as folder:
        fleet = Path(folder) / "fleet.yaml"
        fleet.write_text(fleet_text(nodes))
        started = time.perf_counter()
        with Up(["--fleet", str(fleet), "--workers", str(given.workers)]) as up:
            up_s = time.perf_counter() - started
            outcome = uvloop.run(replay(up, nodes, tasks, given))
            outcome.broken += [f"`redsched up` said: {line}" for line in shortened(up.complaints())]
            outcome.broken += up.end()
    outcome.up_s = up_s
    return outcome


def print_table(outcome: Outcome) -> None:
    """Print the results."""
    print(f"{outcome.hosts} hosts reported through the agents' code and were ready in {outcome.up_s:.1f} s\n")
    heads = ("phase", "asked", "placed", "refused", "GPU-milli", "seconds", "per s", "p50 ms", "p95 ms", "p99 ms")
    print("{:<8} {:>6} {:>7} {:>8} {:>20} {:>8} {:>7} {:>7} {:>7} {:>7}".format(*heads))
    for one in outcome.phases:
        gpus = f"{one.gpu_milli} of {one.of_gpu_milli}"
        print(
            f"{one.name:<8} {one.asked:>6} {one.placed:>7} {one.refused:>8} {gpus:>20} {one.seconds:>8.1f} "
            f"{one.per_second:>7.0f} {one.p50_ms:>7.2f} {one.p95_ms:>7.2f} {one.p99_ms:>7.2f}"
        )
    print()
    for one in outcome.phases:
        share = ", ".join(f"{role} {value:.2f}" for role, value in one.cpu_share.items())
        print(
            f"{one.name}: refused mostly by {one.refused_by or 'nothing'}; asked again after no answer or 5xx: ", end=""
        )
        print(f"{one.asked_again}; further claim rounds: {one.retries}; cores used: {share}")
    statuses = ", ".join(f"{count} answered {status}" for status, count in sorted(outcome.released.items()))
    print(f"release: {statuses}; all ended by their hosts after {outcome.ended_s:.1f} s")
    bad = sum(1 for one in outcome.audits if one["problems"])
    claims = ", ".join(str(one["claims"]) for one in outcome.audits)
    print(f"audits: {len(outcome.audits)}, of which {bad} found something; each over these claims: {claims}")
    print("\n".join(["BROKEN", *outcome.broken]) if outcome.broken else "nothing is broken")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("nodes", help="node list (CSV)")
    parser.add_argument("tasks", help="task list (CSV)")
    parser.add_argument("--clients", type=int, default=4, help="concurrent clients, a connection each")
    parser.add_argument("--workers", type=int, default=2, help="API processes")
    parser.add_argument("--policy", default="", help="the API's own setting without")
    parser.add_argument("--limit", type=int, default=None, help="only the first tasks")
    parser.add_argument("--audit-pause", type=float, default=2.0, help="seconds between two audits")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    end_in_order()
    outcome = run(given)
    if given.json:
        print(json.dumps(asdict(outcome)))
    else:
        print_table(outcome)
    return 1 if outcome.broken else 0


if __name__ == "__main__":
    sys.exit(main())
