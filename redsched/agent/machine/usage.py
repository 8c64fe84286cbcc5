"""Measure the memory and CPU time that the work of claims uses.

The hook names that work: processes (counted with their children) or a cgroup. All measurements err low: usage that
cannot be read counts as external, which may waste room, but never offers room that is in use.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from redsched.agent.collectors.base import Named, Work
from redsched.agent.machine.sysfs import read_text

CGROUPS = Path("/sys/fs/cgroup")
START_TOLERANCE_S = 0.02
"""Tolerance for start times, which the kernel keeps in clock ticks and the journal as a float."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of all claims' work together. `complete` is False if the work of some claim could not be identified.

    `cgroups` are those that hooks named; `pids` are the processes of the other work, with their children. `by_device`
    has the processes, in cgroups too, of the work whose claims hold each device.
    """

    memory_bytes: int
    cpu_s: float
    complete: bool
    cgroups: frozenset[str]
    pids: frozenset[int]
    by_device: Mapping[str, frozenset[int]] = field(default_factory=dict)


def measure(works: Sequence[Work], cgroups: Path = CGROUPS) -> Usage:
    """Measure the usage of `works`. A claim whose hook named neither pids nor a cgroup makes it incomplete."""
    known = [(work, work.named) for work in works if work.named is not None and _is_measurable(work.named)]
    groups = frozenset(named.cgroup for _, named in known if named.cgroup)
    families = _families([{} if named.cgroup else named.pids for _, named in known])
    processes = list({process.pid: process for family in families for process in family}.values())
    by_device: defaultdict[str, set[int]] = defaultdict(set)
    for (work, named), family in zip(known, families, strict=True):
        for device in work.devices:
            by_device[device].update(process.pid for process in family)
            by_device[device].update(cgroup_pids(named.cgroup, cgroups) if named.cgroup else ())
    return Usage(
        memory_bytes=sum(cgroup_memory_bytes(group, cgroups) for group in groups)
        + sum(_memory_bytes(process) for process in processes),
        cpu_s=sum(cgroup_cpu_s(group, cgroups) for group in groups) + sum(_cpu_s(process) for process in processes),
        complete=len(known) == len(works),
        cgroups=groups,
        pids=frozenset(process.pid for process in processes),
        by_device={device: frozenset(pids) for device, pids in by_device.items()},
    )


def start_time(pid: int) -> float | None:
    """Return when the process `pid` started, in seconds since 1970; None if there is no such process."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def _is_measurable(named: Named) -> bool:
    return bool(named.cgroup or named.pids)


def _families(works: Sequence[Mapping[int, float]]) -> list[list[psutil.Process]]:
    """Return the processes of each work, of which pids and start times are named, that still run.

    Their descendants count too, each once.
    """
    children: defaultdict[int, list[psutil.Process]] = defaultdict(list)
    for process in psutil.process_iter(["ppid"]) if any(works) else ():
        children[process.info["ppid"] or 0].append(process)
    return [_with_descendants(roots, children) for roots in works]


def _with_descendants(roots: Mapping[int, float], children: Mapping[int, list[psutil.Process]]) -> list[psutil.Process]:
    found: dict[int, psutil.Process] = {}
    waiting = list(_still_running(roots))
    while waiting:
        process = waiting.pop()
        if process.pid not in found:
            found[process.pid] = process
            waiting.extend(children.get(process.pid, ()))
    return list(found.values())


def _still_running(roots: Mapping[int, float]) -> Iterator[psutil.Process]:
    for pid, started in roots.items():
        try:
            process = psutil.Process(pid)
            if abs(process.create_time() - started) <= START_TOLERANCE_S:
                yield process
        except psutil.Error:
            continue


def _memory_bytes(process: psutil.Process) -> int:
    """Return the proportional set size, which counts shared pages once; if unknown, the unshared resident bytes."""
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, OSError, AttributeError):
        pass
    try:
        memory = process.memory_info()
    except psutil.Error:
        return 0
    return max(0, int(memory.rss) - int(getattr(memory, "shared", 0)))


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def cgroup_memory_bytes(cgroup: str, root: Path = CGROUPS) -> int:
    """Return the anonymous and shared memory of a cgroup, v2 or v1, without page cache, which the kernel reclaims."""
    for base, names in ((root, ("anon", "shmem")), (root / "memory", ("total_rss", "total_shmem"))):
        values = _read_pairs(cgroup_path(cgroup, base) / "memory.stat")
        if values:
            return sum(values.get(name, 0) for name in names)
    return 0


def cgroup_cpu_s(cgroup: str, root: Path = CGROUPS) -> float:
    """Return the CPU seconds that a cgroup has used (v2, else v1)."""
    values = _read_pairs(cgroup_path(cgroup, root) / "cpu.stat")
    if "usage_usec" in values:
        return values["usage_usec"] / 1e6
    try:
        return int((cgroup_path(cgroup, root / "cpuacct") / "cpuacct.usage").read_text()) / 1e9
    except (OSError, ValueError):
        return 0.0


def cgroup_pids(cgroup: str, root: Path = CGROUPS) -> frozenset[int]:
    """Return the processes in a cgroup and in those below it (v2, else v1)."""
    for base in (root, root / "memory"):
        if (folder := cgroup_path(cgroup, base)).is_dir():
            lists = (read_text(path) for path in folder.rglob("cgroup.procs"))
            return frozenset(int(pid) for pids in lists for pid in pids.split())
    return frozenset()


def cgroup_path(cgroup: str, root: Path) -> Path:
    """Return the directory of a cgroup below `root`, from an absolute or a relative path."""
    return root / cgroup.removeprefix(str(CGROUPS)).lstrip("/")


def _read_pairs(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in read_text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}
