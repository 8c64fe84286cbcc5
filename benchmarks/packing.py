"""How much of a real fleet's GPUs each policy fills: the published protocol, with deciding and columns alone.

    python -m benchmarks.packing NODES.csv TASKS.csv ... [--policy pack best_fit gpu] [--seed 42] [--pick-from 1]
                                 [--schedulers 8] [--learn] [--churn] [--json] [--write-trace FILE]

The protocol is that of the source of the lists (Weng et al., Beware of Fragmentation, USENIX ATC 2023): the tasks are
shuffled, uniformly drawn ones are added until the requested GPUs are 130 % of the fleet's, each is requested once, in
order, and nothing is ever deleted. The result is the part of the fleet's GPUs that is allocated at the end. It uses no
store and no API, to measure the choice alone; every claim is applied like a reply of the claim script.

With `--churn`, tasks end as well: after that sequence, as a warm-up, three more of its length follow, and before each
task a random one of those requested, placed or not, ends. So 130 % stay requested. The result is the mean of the
allocated part over all steps after the warm-up, and the part of tasks for 8 GPUs that were placed in them.

With `--schedulers N`, N requests at a time are decided on the same columns, as by schedulers that race, before any of
them is claimed; what others took first is then handled as the claim script does it. With `--learn`, the policy begins
with the default settings instead of the list's own shares, and learns from the requests as schedulers do.

With `--write-trace`, nothing is played: the sequence of the first list and seed, a task each second, becomes a trace
for `redsched replay`.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from statistics import mean, median

from benchmarks.openb import CPU, MEMORY, SHARES, Node, Task, read_nodes, read_tasks
from benchmarks.trace_checks import is_gpu
from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.result import Decision
from redsched.model import Candidate
from redsched.model.workload import ScarceDemand, Workload
from redsched.offline.trace import EMPTY_HEAD, TRACE_FORMAT
from redsched.operate.backup.archive import Archive, archive_lines
from redsched.settings import Settings
from redsched.store.codec.fields import attribute_fields, host_fields
from redsched.store.codec.replies import HostUsage
from redsched.store.commands.workload import STEP

EPOCH = "1-a"
ASKED = 1.3
"""Requested GPUs relative to those of the fleet."""
FURTHER = 3
"""The sequences of a churn after the warm-up."""
LARGE = 8
"""The GPUs of the tasks whose acceptance is shown."""

POLICIES: Mapping[str, Mapping[str, float]] = {
    "best_fit": {"best_fit": 1.0},
    "dot_product": {"dot_product": 1.0},
    "gpu_fragmentation": {"gpu_fragmentation": 1.0},
    "gpu_stranding": {"gpu_stranding": 1.0},
}
"""Additional policies besides those of redsched and of the settings."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a list is played."""

    policy: str
    seed: int
    settings: Settings
    schedulers: int = 1
    learns: bool = False


@dataclass(frozen=True, slots=True)
class Packed:
    """One run: allocated GPU shares, refusals by their main reason, the median processor time of a decision.

    `gpu_milli` is what is allocated of `of_gpu_milli`, in thousandths of a GPU, and `percent` the same part: at the
    end, or for a churn their mean. `large` are the tasks for 8 GPUs that were requested in that time, and
    `large_placed` those that were placed. Programs read these names with `--json`.
    """

    tasks: str
    policy: str
    seed: int
    asked: int
    placed: int
    gpu_milli: float
    of_gpu_milli: int
    percent: float
    large: int
    large_placed: int
    refused_by: dict[str, int]
    median_us: float


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


@dataclass
class Fleet:
    """The fleet during a run: the columns, what was learned, and what was counted."""

    columns: Columns
    run: Run
    rng: Random
    refused: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    large: Counter[bool] = field(default_factory=Counter)
    allocated: int = 0
    _requests: int = 0
    _shares: Counter[int] = field(default_factory=Counter)
    _amounts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._decider = Decider(self.columns, self.run.settings)

    def place(self, tasks: Sequence[Task]) -> list[Candidate | None]:
        """Decide on all tasks, then claim their places one after the other. Returns where each is; None: refused."""
        decisions = [self._decide(task) for task in tasks]
        return [self._claim(task, decision) for task, decision in zip(tasks, decisions, strict=True)]

    def release(self, where: Candidate) -> None:
        """End a task."""
        self._change(where, -1)

    def _decide(self, task: Task) -> Decision:
        start = time.thread_time()
        decision = self._decider.decide(task.request(self.run.policy), self.rng)
        self.times.append(time.thread_time() - start)
        return decision

    def _claim(self, task: Task, decision: Decision) -> Candidate | None:
        while decision.places:
            fitting = (one for one in decision.places[0].candidates if has_room(self.columns, one))
            if chosen := next(fitting, None):
                self._change(chosen, 1)
                break
            decision = self._decide(task)
        else:
            chosen = None
            self.refused[max(decision.reasons, key=lambda one: one.hosts).reason] += 1
        if len(task.shares) == LARGE:
            self.large[chosen is not None] += 1
        if self.run.learns and task.shares:
            self._learn(task)
        return chosen

    def _change(self, where: Candidate, sign: int) -> None:
        change(self.columns, where, sign)
        self.allocated += sign * sum(amount for slot, amount in where.amounts.items() if is_gpu(slot))

    def _learn(self, task: Task) -> None:
        """Count like the store: the sums change in steps."""
        self._requests += 1
        self._shares.update(task.shares)
        self._amounts.update({name: task.amounts.get(name, 0) for name in self.run.settings.gpu_beside})
        self._amounts[SHARES] += sum(task.shares)
        if self._requests % STEP == 0:
            asked = ScarceDemand(self._requests, dict(self._amounts))
            self.columns.workload = Workload(dict(self._shares), {SHARES: asked})


def has_room(columns: Columns, candidate: Candidate) -> bool:
    """Return whether the amounts still fit, as the claim script does."""
    row = columns.row(candidate.host)
    assert row is not None
    return all(
        columns.claimed[slot].item(row) + amount <= columns.capacity[slot].item(row)
        for slot, amount in candidate.amounts.items()
    )


def change(columns: Columns, where: Candidate, sign: int) -> None:
    """Apply a claim (1) or its end (-1) like a reply of a script. Raises SystemExit if a GPU is over its capacity."""
    row, version = columns.row(where.host), columns.version(where.host)
    assert row is not None
    assert version is not None
    claimed = {slot: columns.claimed[slot].item(row) + sign * amount for slot, amount in where.amounts.items()}
    for slot, amount in claimed.items():
        if not 0 <= amount <= columns.capacity[slot].item(row):
            raise SystemExit(f"{where.host} {slot}: {amount} claimed of {columns.capacity[slot].item(row)}")
    claims = columns.claims.item(row) + sign
    assert columns.from_reply(HostUsage(where.host, version + 1, "", claimed, claims, claims), EPOCH)


def fill(nodes: Sequence[Node], tasks: Sequence[Task], run: Run, name: str = "") -> Packed:
    """Play one run without ends."""
    fleet = Fleet(make_columns(nodes), run, Random(run.seed))
    total = gpu_milli(fleet.columns)[1]
    asked = sequence(tasks, total, run.seed)
    for first in range(0, len(asked), run.schedulers):
        fleet.place(asked[first : first + run.schedulers])
    claimed, total = gpu_milli(fleet.columns)
    return _packed(name, run, len(asked), fleet, claimed, total)


def churn(nodes: Sequence[Node], tasks: Sequence[Task], run: Run, name: str = "") -> Packed:
    """Play one run in which tasks end."""
    fleet, rng = Fleet(make_columns(nodes), run, Random(run.seed)), Random(run.seed + 1)
    total = gpu_milli(fleet.columns)[1]
    warm_up = sequence(tasks, total, run.seed)
    offered = [fleet.place([task])[0] for task in warm_up]
    fleet.large.clear()
    fleet.refused.clear()
    allocated = list[int]()
    for _ in range(FURTHER * len(warm_up)):
        gone = rng.randrange(len(offered))
        if where := offered[gone]:
            fleet.release(where)
        offered[gone] = fleet.place([rng.choice(tasks)])[0]
        allocated.append(fleet.allocated)
    return _packed(name, run, len(allocated), fleet, mean(allocated), total)


def _packed(name: str, run: Run, asked: int, fleet: Fleet, claimed: float, total: int) -> Packed:
    placed = asked - fleet.refused.total()
    refused, us = dict(fleet.refused), median(fleet.times) * 1e6
    percent, large = 100.0 * claimed / total, fleet.large
    return Packed(
        name, run.policy, run.seed, asked, placed, claimed, total, percent, large.total(), large[True], refused, us
    )


def settings_for(tasks: Sequence[Task], pick_from: int, learns: bool) -> Settings:
    """Return the settings of a run: with the shares and the amounts of the list, as in FGD, unless it learns them."""
    own = Settings()
    policies = {**POLICIES, **own.policies}
    shares = Counter(share for task in tasks for share in task.shares)
    if not shares or learns:
        beside = {CPU: own.gpu_beside["VCPU"] * 1000, MEMORY: own.gpu_beside["MEMORY_MB"]}
        return Settings(pick_from=pick_from, policies=policies, gpu_beside=beside)
    gpus = sum(share * count for share, count in shares.items()) / 1000
    with_gpu = [task for task in tasks if task.shares]
    beside = {name: sum(task.amounts.get(name, 0) for task in with_gpu) / gpus for name in (CPU, MEMORY)}
    usual = {share: float(count) for share, count in shares.items()}
    return Settings(pick_from=pick_from, policies=policies, gpu_shares=usual, gpu_beside=beside)


def print_row(one: Packed) -> None:
    """Print one run."""
    large = f"8 GPUs: {one.large_placed} of {one.large}, " if one.large else ""
    print(
        f"{one.tasks:<12} {one.policy:<18} seed {one.seed:>2}: {one.percent:6.2f} %, "
        f"{one.placed} of {one.asked} placed, {large}median {one.median_us:.0f} us, refused by {one.refused_by}",
        flush=True,
    )


def print_means(results: Sequence[Packed]) -> None:
    """Print the mean of each policy over all lists and seeds."""
    for policy in dict.fromkeys(one.policy for one in results):
        percents = [one.percent for one in results if one.policy == policy]
        print(f"mean of {len(percents)} runs: {policy:<18} {mean(percents):6.2f} %")


def runs(nodes: Sequence[Node], given: argparse.Namespace) -> Iterator[Packed]:
    """Yield every list with every policy and seed, each as soon as it is done."""
    play = churn if given.churn else fill
    for path in given.tasks:
        with open(path, newline="") as lines:
            tasks = read_tasks(lines)
        settings = settings_for(tasks, given.pick_from, given.learn)
        name = Path(path).stem.rpartition("_")[2]
        for policy in given.policy:
            for seed in given.seed:
                yield play(nodes, tasks, Run(policy, seed, settings, given.schedulers, given.learn), name)


def trace_of(nodes: Sequence[Node], tasks: Sequence[Task], seed: int) -> Iterator[str]:
    """Yield the lines of a trace of one sequence."""
    asked = sequence(tasks, gpu_milli(make_columns(nodes))[1], seed)
    yield json.dumps({"kind": "trace", "format": TRACE_FORMAT})
    _, *hosts = archive_lines(Archive(EMPTY_HEAD, hosts=tuple(node.report() for node in nodes)))
    yield from hosts
    for number, task in enumerate(asked):
        yield json.dumps({"kind": "arrival", "at_s": number, "request": json.loads(task.body())})


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("nodes", help="node list (CSV)")
    parser.add_argument("tasks", nargs="+", help="task lists (CSV)")
    parser.add_argument(
        "--policy", nargs="+", default=["spread", "pack", *POLICIES, "gpu"], help="policies, also of settings"
    )
    parser.add_argument("--seed", type=int, nargs="+", default=[42], help="one run for each")
    parser.add_argument("--pick-from", type=int, default=1, help="the first host is a random one of this many best")
    parser.add_argument("--schedulers", type=int, default=1, help="how many requests are decided at the same time")
    parser.add_argument("--learn", action="store_true", help="learn the workload instead of reading it from the list")
    parser.add_argument("--churn", action="store_true", help="tasks end as well")
    parser.add_argument("--write-trace", metavar="FILE", help="write a trace for `redsched replay` instead")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    if given.churn and given.schedulers > 1:
        parser.error("--churn is played by one scheduler: leave out --schedulers")
    with open(given.nodes, newline="") as lines:
        nodes = read_nodes(lines)
    if given.write_trace:
        with open(given.tasks[0], newline="") as lines:
            text = "".join(f"{line}\n" for line in trace_of(nodes, read_tasks(lines), given.seed[0]))
        Path(given.write_trace).write_text(text)
        return
    results = list[Packed]()
    for one in runs(nodes, given):
        results.append(one)
        if not given.json:
            print_row(one)
    if given.json:
        print(json.dumps([asdict(one) for one in results]))
    else:
        print_means(results)


if __name__ == "__main__":
    main()
