"""How much of a real fleet's GPUs each policy fills: the published protocol, with deciding and columns alone.

    python -m benchmarks.packing NODES.csv TASKS.csv [--policy pack best_fit gpu] [--seed 42] [--pick-from 1] [--json]

The protocol is that of the source of the lists (Weng et al., Beware of Fragmentation, USENIX ATC 2023): the tasks are
shuffled, uniformly drawn ones are added until the requested GPUs are 130 % of the fleet's, each is requested once, in
order, and nothing is ever deleted. The result is the part of the fleet's GPUs that is allocated at the end. It uses no
store and no API, to measure the choice alone; every claim is applied like a reply of the claim script.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from statistics import median

from benchmarks.openb import Node, Task, read_nodes, read_tasks
from benchmarks.trace_checks import is_gpu
from redsched.cache.columns import Columns
from redsched.decide import Decider
from redsched.model import Candidate
from redsched.settings import Settings
from redsched.store.codec.fields import attribute_fields, host_fields
from redsched.store.codec.results import HostUsage

EPOCH = "1-a"
ASKED = 1.3
"""Requested GPUs relative to those of the fleet."""

POLICIES: Mapping[str, Mapping[str, float]] = {
    "best_fit": {"best_fit": 1.0},
    "dot_product": {"dot_product": 1.0},
    "gpu_fragmentation": {"gpu_fragmentation": 1.0},
}
"""Additional policies besides those of redsched and of the settings."""


@dataclass(frozen=True, slots=True)
class Packed:
    """One run: allocated GPU shares, refusals by their main reason, the median processor time of a decision."""

    policy: str
    seed: int
    asked: int
    placed: int
    gpu_milli: int
    of_gpu_milli: int
    refused_by: dict[str, int]
    median_us: float

    @property
    def percent(self) -> float:
        """Return the allocated part of all GPUs at the end."""
        return 100.0 * self.gpu_milli / self.of_gpu_milli


def make_columns(nodes: Sequence[Node]) -> Columns:
    """Return the fleet as the scheduler has it, with nothing claimed."""
    columns = Columns(len(nodes))
    columns.set_epoch(EPOCH)
    for node in nodes:
        report = node.report()
        told = {"version": "1", "epoch": EPOCH, "status": "enabled", "alive": "1"}
        columns.put(node.name, {**host_fields(report), **attribute_fields(report), **told})
    return columns


def sequence(tasks: Sequence[Task], of_gpu_milli: int, seed: int) -> list[Task]:
    """Return the tasks of one run: shuffled, then drawn until enough is requested. Ends, as some tasks need GPUs."""
    rng = Random(seed)
    found = rng.sample(tasks, len(tasks))
    asked = sum(sum(task.shares) for task in tasks)
    while asked < ASKED * of_gpu_milli:
        found.append(rng.choice(tasks))
        asked += sum(found[-1].shares)
    return found


def gpu_milli(columns: Columns) -> tuple[int, int]:
    """Return the claimed amount of all GPUs, and their capacity."""
    slots = [slot for slot in columns.capacity if is_gpu(slot)]
    return sum(int(columns.claimed[slot].sum()) for slot in slots), sum(
        int(columns.capacity[slot].sum()) for slot in slots
    )


def pack(nodes: Sequence[Node], tasks: Sequence[Task], policy: str, seed: int, settings: Settings) -> Packed:
    """Play one run."""
    columns, rng = make_columns(nodes), Random(seed)
    decider, refused, times = Decider(columns, settings), Counter[str](), list[float]()
    asked = sequence(tasks, gpu_milli(columns)[1], seed)
    for task in asked:
        start = time.thread_time()
        decision = decider.decide(task.request(policy), rng)
        times.append(time.thread_time() - start)
        if decision.places:
            claim(columns, decision.places[0].chosen)
        else:
            refused[max(decision.reasons, key=lambda one: one.hosts).reason] += 1
    placed = len(asked) - refused.total()
    return Packed(policy, seed, len(asked), placed, *gpu_milli(columns), dict(refused), median(times) * 1e6)


def claim(columns: Columns, chosen: Candidate) -> None:
    """Apply a claim like a reply of the claim script. Raises SystemExit if a GPU is over its capacity."""
    row, version = columns.row(chosen.host), columns.version(chosen.host)
    assert row is not None
    assert version is not None
    claimed = {slot: columns.claimed[slot].item(row) + amount for slot, amount in chosen.amounts.items()}
    for slot, amount in claimed.items():
        if amount > columns.capacity[slot].item(row):
            raise SystemExit(f"{chosen.host} {slot}: {amount} claimed of {columns.capacity[slot].item(row)}")
    claims = columns.claims.item(row) + 1
    assert columns.from_reply(HostUsage(chosen.host, version + 1, "", claimed, claims, claims), EPOCH)


def run(
    nodes: Sequence[Node], tasks: Sequence[Task], policies: Sequence[str], seeds: Sequence[int], pick_from: int
) -> Iterator[Packed]:
    """Yield every policy with every seed, each as soon as it is done. Known shares are those of the list, as in FGD."""
    own = Settings()
    shares = Counter(share for task in tasks for share in task.shares)
    usual: dict[int, float] = {share: float(count) for share, count in shares.items()}
    settings = Settings(pick_from=pick_from, policies={**POLICIES, **own.policies}, gpu_shares=usual or own.gpu_shares)
    for policy in policies:
        for seed in seeds:
            yield pack(nodes, tasks, policy, seed, settings)


def print_row(one: Packed) -> None:
    """Print the table."""
    print(
        f"{one.policy:<20} seed {one.seed:>3}: {one.percent:6.2f} %  {one.gpu_milli} of {one.of_gpu_milli} GPU-milli, "
        f"{one.placed} of {one.asked} placed, median {one.median_us:.0f} us, refused by {one.refused_by}",
        flush=True,
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("nodes", help="node list (CSV)")
    parser.add_argument("tasks", help="task list (CSV)")
    parser.add_argument(
        "--policy", nargs="+", default=["spread", "pack", *POLICIES, "gpu"], help="policies, also of settings"
    )
    parser.add_argument("--seed", type=int, nargs="+", default=[42], help="one run for each")
    parser.add_argument("--pick-from", type=int, default=1, help="the first host is a random one of this many best")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    with open(given.nodes, newline="") as lines:
        nodes = read_nodes(lines)
    with open(given.tasks, newline="") as lines:
        tasks = read_tasks(lines)
    results = run(nodes, tasks, given.policy, given.seed, given.pick_from)
    if given.json:
        print(json.dumps([asdict(one) for one in results]))
    else:
        for one in results:
            print_row(one)


if __name__ == "__main__":
    main()
