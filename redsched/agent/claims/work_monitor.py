"""Watch the work that hooks named (pids, a cgroup), and handle its claim when nothing of it is left.

Work counts as gone when two checks in a row find nothing, so that a service manager has time to restart a service; one
check suffices once it has left its exit status. Work that the hook named only by its domain, or not at all, cannot be
watched. Collectors watch local work.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from redsched.agent.claims.tasks import ClaimTasks
from redsched.agent.collectors.base import Named
from redsched.agent.host_session import Host
from redsched.agent.journal.schema import JournalEntry
from redsched.agent.machine.processes import is_populated, is_running
from redsched.agent.machine.usage import CGROUPS
from redsched.model import ClaimStatus, OnExit
from redsched.model.claims import exit_status_in, work_ended_text
from redsched.pacing import paced

MAX_PIDS_TOLD = 5
MAX_STATUS, MAX_STATUS_BYTES = 255, 16


class WorkMonitor:
    """Watches the work of all hosts of an agent. `hosts` is the agent's own dict: hosts that stop leave it."""

    def __init__(
        self, hosts: Mapping[str, Host], claim_tasks: Mapping[str, ClaimTasks], every_s: float, cgroups: Path = CGROUPS
    ) -> None:
        self._hosts = hosts
        self._claim_tasks = claim_tasks
        self._every_s = every_s
        self._cgroups = cgroups
        self._missing: dict[tuple[str, str], JournalEntry] = {}
        """The work that the last check did not find, by host and placement."""

    async def run(self) -> None:
        """Check periodically, until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            await self.check()

    async def check(self) -> None:
        """Check once, and begin to handle the claims whose work has ended."""
        watched = await self._watched()
        # In a thread: reading a file of a cgroup waits for the kernel's locks.
        texts = await asyncio.to_thread(self._ended, list(watched.values())) if watched else []
        missing = {key: text for key, text in zip(watched, texts, strict=True) if text}
        for key, text in missing.items():
            if self._missing.get(key) is watched[key] or exit_status_in(text) is not None:
                self._claim_tasks[key[0]].find_ended(watched[key], text)
        self._missing = {key: watched[key] for key in missing}

    async def _watched(self) -> dict[tuple[str, str], JournalEntry]:
        watched = dict[tuple[str, str], JournalEntry]()
        async for host in paced(list(self._hosts)):
            for one in self._claim_tasks[host].idle_placements():
                if is_watched(one):
                    watched[host, one.placed] = one
        return watched

    def _ended(self, works: Sequence[JournalEntry]) -> list[str]:
        return [describe_end(one.named, self._cgroups) if one.named is not None else "" for one in works]


def is_watched(work: JournalEntry) -> bool:
    """Return whether a claim's work can be watched: its host knows it as running and can identify it."""
    named = work.named
    can_be_seen = named is not None and named.is_watched and bool(named.cgroup or named.started)
    is_told = work.on_exit is OnExit.KEEP and work.work_end is not None
    runs = work.state is ClaimStatus.ACTIVE and not work.resizing_to
    return runs and can_be_seen and not work.is_local and not is_told


def describe_end(named: Named, cgroups: Path = CGROUPS) -> str:
    """Return a description of named work that has ended completely; '' while any of it runs."""
    if any(is_running(pid, mark) for pid, mark in named.started.items()):
        return ""
    if named.cgroup and is_populated(named.cgroup, cgroups):
        return ""
    ended = [_pids_ended(list(named.started))] if named.started else []
    ended += [f"cgroup {named.cgroup} is gone or empty"] if named.cgroup else []
    return work_ended_text(_exit_status(named.status_file), ended)


def _exit_status(path: str) -> int | None:
    """Return the exit status that work has left in its file; None if it left none."""
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_STATUS_BYTES).decode("ascii", "replace").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() and int(text) <= MAX_STATUS else None


def _pids_ended(pids: Sequence[int]) -> str:
    shown = ", ".join(map(str, pids[:MAX_PIDS_TOLD]))
    more = f" and {len(pids) - MAX_PIDS_TOLD} more" if len(pids) > MAX_PIDS_TOLD else ""
    return f"no process {shown}{more} is left"
