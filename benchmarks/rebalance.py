"""How many more tasks for 8 GPUs get into a real fleet by a few moves: filled, then a part of its tasks deleted.

    python -m benchmarks.rebalance NODES.csv TASKS.csv [--policy gpu] [--seed 42 43 44] [--deleted 30] [--moves 50]
                                  [--json]

The fleet is filled as in `benchmarks.packing`, until 130 % of its GPUs were requested. Then a random part of the placed
tasks ends. The result is how many of the list's most common task for 8 GPUs fit then, and how many after the moves of
`redsched plan rebalance`, made on a copy of the fleet, and verified on another one. No store is used.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random

from benchmarks.openb import Node, Task, read_nodes, read_tasks
from benchmarks.packing import EPOCH, LARGE, Fleet, Run, change, gpu_milli, make_columns, sequence, settings_for
from redsched.decide.plugins.registry import plugin_registry
from redsched.errors import RedschedError
from redsched.model import MAX_COUNT, Candidate, Claim, Request
from redsched.model.records.plans import Aim, RebalancePlan
from redsched.operate.plans.cell_copy import CellCopy
from redsched.operate.plans.questions import answer
from redsched.operate.plans.rebalancing import RebalanceQuestion, VerifyQuestion
from redsched.settings import Settings
from redsched.store.codec.fields import claim_from

LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Rebalanced:
    """One run. `before` and `after` are the numbers of tasks for 8 GPUs that fit; `plan_s` is processor time."""

    policy: str
    seed: int
    tasks: int
    moves: int
    before: int
    after: int
    plan_s: float


def filled(nodes: Sequence[Node], tasks: Sequence[Task], run: Run, deleted: float) -> dict[str, tuple[Task, Candidate]]:
    """Return the tasks that are left, by a claim id each, and where they are."""
    fleet = Fleet(make_columns(nodes), run, Random(run.seed))
    asked = sequence(tasks, gpu_milli(fleet.columns)[1], run.seed)
    placed = [(task, where) for task in asked if (where := fleet.place([task])[0]) is not None]
    kept = Random(run.seed).sample(placed, round(len(placed) * (1 - deleted)))
    return {f"{number}-{task.name}": (task, where) for number, (task, where) in enumerate(kept)}


def copied(nodes: Sequence[Node], held: dict[str, tuple[Task, Candidate]], run: Run) -> CellCopy:
    """Return a new copy of the fleet, with a claim for each task."""
    columns, claims, requests = make_columns(nodes), dict[str, Claim](), dict[str, str]()
    for number, (claim_id, (task, where)) in enumerate(held.items(), 1):
        change(columns, where, 1)
        request = replace(task.request(run.policy), claim_ids=())
        token = f"{EPOCH}.{number}"
        amounts = {f"amount.{slot}": str(amount) for slot, amount in where.amounts.items()}
        about = {"host": where.host, "state": "active", "token": token, "placed": token, "digest": request.digest()}
        claims[claim_id] = claim_from("c1", claim_id, {**about, **amounts})
        requests[request.digest()] = request.canonical()
    return CellCopy("c1", columns, run.settings, plugin_registry(run.settings), claims, requests)


def large_request(tasks: Sequence[Task], policy: str) -> Request:
    """Return the request of the most common task for 8 GPUs, for as many places as a request may have."""
    shapes = Counter(task.request(policy).shape() for task in tasks if len(task.shares) == LARGE)
    most = shapes.most_common(1)[0][0]
    found = next(one for task in tasks if (one := task.request(policy)).shape() == most)
    return replace(found, claim_ids=(), count=MAX_COUNT)


def rebalance(nodes: Sequence[Node], tasks: Sequence[Task], run: Run, deleted: float, moves: int) -> Rebalanced:
    """Play one run."""
    held = filled(nodes, tasks, run, deleted)

    def ask(question: Callable[[CellCopy], RebalancePlan]) -> RebalancePlan:
        found = answer(lambda: copied(nodes, held, run), question, LIMIT_S)
        if isinstance(found, RedschedError):
            raise found
        return found

    start = time.thread_time()
    question = RebalanceQuestion(Aim.REQUEST, moves, large_request(tasks, run.policy))
    found = ask(VerifyQuestion(question, ask(question)))
    spent_s = time.thread_time() - start
    return Rebalanced(run.policy, run.seed, len(held), len(found.moves), int(found.before), int(found.after), spent_s)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("nodes", help="node list (CSV)")
    parser.add_argument("tasks", help="task list (CSV)")
    parser.add_argument("--policy", default="gpu", help="the policy of the tasks")
    parser.add_argument("--seed", type=int, nargs="+", default=[42, 43, 44], help="one run for each")
    parser.add_argument("--deleted", type=float, default=30.0, help="how many of 100 placed tasks end")
    parser.add_argument("--moves", type=int, default=50, help="the most moves")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    with open(given.nodes, newline="") as nodes_file, open(given.tasks, newline="") as tasks_file:
        nodes, tasks = read_nodes(nodes_file), read_tasks(tasks_file)
    settings: Settings = settings_for(tasks, 1, learns=False)
    found = list[Rebalanced]()
    for seed in given.seed:
        one = rebalance(nodes, tasks, Run(given.policy, seed, settings), given.deleted / 100, given.moves)
        found.append(one)
        if not given.json:
            print(
                f"{one.policy} seed {one.seed}: {one.tasks} tasks left; {one.before} more for 8 GPUs fit, "
                f"{one.after} after {one.moves} moves: +{one.after - one.before}; planned in {one.plan_s:.1f} s",
                flush=True,
            )
    if given.json:
        print(json.dumps([asdict(one) for one in found]))


if __name__ == "__main__":
    main()
