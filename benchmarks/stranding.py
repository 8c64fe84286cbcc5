"""How many scarce devices each weigher fills, without and with `stranding`: FPGAs for the GPUs of a real fleet.

    python -m benchmarks.stranding NODES.csv TASKS.csv ... [--seed 42] [--multiplier 1.0] [--json]

The fleet and the tasks are those of `benchmarks.packing`, and so is the protocol: 130 % of the devices are requested,
each task once, and nothing ends. But a GPU is an FPGA here, a plain amount of its host, and a task for a share of a GPU
asks for one. So no device can be used in part, and none needs a model: all that is lost is lost beside them.
`REDSCHED_SCARCE` has the list's own amounts beside an FPGA. The result is the part of the FPGAs that is allocated.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random

from benchmarks.openb import CPU, MEMORY, WHOLE, Node, Task, read_nodes, read_tasks
from benchmarks.packing import Fleet, Run, make_columns, sequence
from redsched.settings import Settings

FPGA = "FPGA"
WEIGHERS = ("spread", "pack", "best_fit", "balance")


@dataclass(frozen=True, slots=True)
class Filled:
    """One run: `stranding` is its multiplier beside the weigher, `percent` the allocated part of all FPGAs."""

    tasks: str
    weigher: str
    seed: int
    stranding: float
    asked: int
    placed: int
    percent: float


def with_fpgas(node: Node) -> Node:
    """Return a node with FPGAs instead of its GPUs."""
    return Node(node.name, {**node.amounts, **({FPGA: node.gpus} if node.gpus else {})}, 0, "")


def for_fpgas(task: Task) -> Task:
    """Return a task for as many FPGAs as GPUs that it takes from."""
    return Task(task.name, {**task.amounts, **({FPGA: len(task.shares)} if task.shares else {})}, (), ())


def beside(tasks: Sequence[Task]) -> dict[str, float]:
    """Return the mean amounts that tasks request beside an FPGA."""
    asking = [task for task in map(for_fpgas, tasks) if FPGA in task.amounts]
    devices = sum(task.amounts[FPGA] for task in asking)
    means = {name: sum(task.amounts.get(name, 0) for task in asking) / devices for name in (CPU, MEMORY)}
    return {name: mean for name, mean in means.items() if mean}


def fill(nodes: Sequence[Node], tasks: Sequence[Task], weigher: str, seed: int, multiplier: float, name: str) -> Filled:
    """Play one run."""
    policies = {"played": {weigher: 1.0, "stranding": multiplier}}
    settings = Settings(pick_from=1, policies=policies, scarce={FPGA: beside(tasks)})
    columns = make_columns([with_fpgas(node) for node in nodes])
    fleet = Fleet(columns, Run("played", seed, settings), Random(seed))
    whole = [replace(task, shares=(WHOLE,) * len(task.shares)) for task in tasks]
    asked = sequence(whole, WHOLE * sum(node.gpus for node in nodes), seed)
    for task in asked:
        fleet.place([for_fpgas(task)])
    claimed, capacity = (int(family[FPGA].sum()) for family in (columns.claimed, columns.capacity))
    placed = len(asked) - fleet.refused.total()
    return Filled(name, weigher, seed, multiplier, len(asked), placed, 100.0 * claimed / capacity)


def runs(nodes: Sequence[Node], given: argparse.Namespace) -> Iterator[Filled]:
    """Yield each list with each weigher, without and with `stranding`."""
    for path in given.tasks:
        with open(path, newline="") as lines:
            tasks = read_tasks(lines)
        for weigher in WEIGHERS:
            for multiplier in (0.0, given.multiplier):
                yield fill(nodes, tasks, weigher, given.seed, multiplier, Path(path).stem.rpartition("_")[2])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("nodes", help="node list (CSV)")
    parser.add_argument("tasks", nargs="+", help="task lists (CSV)")
    parser.add_argument("--seed", type=int, default=42, help="of the sequence of tasks")
    parser.add_argument("--multiplier", type=float, default=1.0, help="of `stranding`, beside 1 of the weigher")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    with open(given.nodes, newline="") as lines:
        nodes = read_nodes(lines)
    results = list[Filled]()
    for one in runs(nodes, given):
        results.append(one)
        if not given.json:
            added = f"+ {one.stranding:g} stranding" if one.stranding else ""
            placed = f"{one.placed} of {one.asked} placed"
            print(f"{one.tasks:<12} {one.weigher:<8} {added:<15} {one.percent:6.2f} %, {placed}", flush=True)
    if given.json:
        print(json.dumps([asdict(one) for one in results]))


if __name__ == "__main__":
    main()
