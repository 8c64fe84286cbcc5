"""Fence the hosts of a cell that are down, and write them off, if an operator has set a fence command.

One scheduler at a time does it. A host that has been down for `write_off_after_s` and holds claims is fenced: the
command is called with its name, and must prove that the machine is off. Only then, and only if the host was not heard
of since, it is written off and evacuated. The store checks all of that, and the limits, in the calls that write: a
scheduler that dies, or that has lost the duty without knowing, leaves at worst a command that is called twice.
"""

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from typing import IO

from redsched import aio, logs, origin
from redsched.errors import RedschedError
from redsched.model.claims import plain_text
from redsched.origin import SCHEDULER
from redsched.scheduler.background.lease import DutyLease
from redsched.scheduler.background.periodic import repeat
from redsched.scheduler.cells import Cell
from redsched.scheduler.results import Fenced
from redsched.settings import PREFIX, Settings
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import FencingBegun
from redsched.store.commands.fencing import FencingLimits, Held
from redsched.subprocesses import check_command, exit_code, split_command, start

LEASE_S = 5.0
"""The lease of the duty, or three ticks if those are longer: a scheduler that dies is replaced after that."""
MAX_LINE = 300
"""The most characters of a failed command's output that the reason quotes."""
_TAIL_BYTES = 4 * MAX_LINE

_MEANWHILE: Mapping[Outcome, str] = {
    Outcome.ALIVE: "the host was heard of while the command ran: it is not written off",
    Outcome.WRONG_EPOCH: "a new epoch began while the command ran: the host is not written off",
    Outcome.UNKNOWN: "the host was removed while the command ran",
}

log = logs.get_logger(__name__)


class Fencer:
    """Fences the hosts of one cell, while this scheduler has the duty."""

    def __init__(self, cell: Cell, settings: Settings) -> None:
        self._cell, self._tick_s = cell, settings.tick_s
        self._command = FenceCommand(settings.fence, settings.fence_timeout_s) if settings.fence else None
        self._limits = FencingLimits(
            int(settings.write_off_after_s * 1000),
            settings.fence_hosts,
            settings.fence_percent,
            int(settings.fence_within_s * 1000),
        )
        self._duty = DutyLease(cell.store, "fence")
        self._running: set[str] = set()
        """The hosts for which this scheduler runs the command."""
        self._attempts = aio.BackgroundTasks("redsched-fence")
        self._task: asyncio.Task[None] | None = None
        self._held: Held | None = None
        self.outcomes = Counter[Fenced]()
        """How the attempts of this scheduler have ended."""
        self.waiting = 0
        """How many hosts this scheduler should fence and may not."""

    def start(self) -> None:
        """Begin to fence, if there is a command. Raises InvalidRequest if it cannot be run."""
        if self._command is None:
            return
        self._command.check()
        working = repeat(self.run_once, self._tick_s, log.bind(cell=self._cell.name), "fence", first_s=self._tick_s)
        self._task = aio.detached(working, name=f"redsched-fencer-{self._cell.name}")

    async def stop(self) -> None:
        """Stop, and end the commands that run. Another scheduler calls them again."""
        if self._command is None:
            return
        await aio.end(self._task)
        await self._attempts.stop(0)
        await self._duty.close(log, "fencing not given up")

    async def run_once(self) -> None:
        """Begin to fence the hosts that are due, if this scheduler has the duty. Raises StoreUnavailable."""
        former, self._held, self.waiting = self._held, None, 0
        if not await self._duty.is_mine(max(LEASE_S, 3 * self._tick_s)):
            return
        for host, is_noted in (await self._due()).items():
            # Once the limits hold, they hold for every host that does not count yet.
            held = self._held if self._held and not is_noted else await self._begin(host)
            self.waiting += held is not None
            self._held = held or self._held
        if self._held and self._held is not former:
            log.warning("fencing_held", cell=self._cell.name, reason=self._held.value, hosts=self.waiting)

    async def _begin(self, host: str) -> Held | None:
        """Begin to fence a host, unless the limits forbid it; then return why.

        A host that another cell has too is left alone: the command would end what the machine runs there.
        """
        if await self._cell.store.homes.is_shared(host):
            return None
        begun = await self._cell.store.fencing.begin(host, self._limits)
        if not isinstance(begun, FencingBegun):
            return begun
        self._running.add(host)
        self._attempts.begin(self._fence(begun))
        return None

    async def _due(self) -> dict[str, bool]:
        """Return the hosts to fence now, those with the fewest failures first, and whether something is noted."""
        now_ms = self._cell.updater.now_ms()
        down = await self._cell.store.fencing.due(now_ms - self._limits.after_ms)
        if not down.keys() - self._running:
            return {}
        notes = (await self._cell.store.fencing.notes()).hosts
        # What was noted before the host was last heard of is of another time.
        known = {
            host: notes[host] for host, until_ms in down.items() if host in notes and notes[host].began_ms > until_ms
        }
        due = [one for one in down if one not in self._running and (one not in known or known[one].next_ms <= now_ms)]
        due.sort(key=lambda one: known[one].failures if one in known else 0)
        return {host: host in known for host in due}

    async def _fence(self, begun: FencingBegun) -> None:
        origin.enter(SCHEDULER)
        try:
            await self._prove_and_write_off(begun)
        except RedschedError as error:
            # The store keeps the attempt as one that goes on, so the next round repeats it.
            log.warning("fencing_failed", cell=self._cell.name, host=begun.host, problem=error.detail)
        except Exception:  # a defect must not pass unnoticed
            log.exception("fencing_failed", cell=self._cell.name, host=begun.host)
        finally:
            self._running.discard(begun.host)

    async def _prove_and_write_off(self, begun: FencingBegun) -> None:
        assert self._command is not None
        log.warning("host_fencing", cell=self._cell.name, host=begun.host)
        try:
            await self._command.run(begun.host)
        except FenceFailed as error:
            await self._failed(begun, Fenced.FAILED, str(error))
            return
        answer = await self._cell.store.hosts.write_off(begun.host, evacuate=True, fenced=begun)
        if answer.outcome in _MEANWHILE:
            await self._failed(begun, Fenced.RETURNED, _MEANWHILE[answer.outcome])
        elif answer.outcome is Outcome.OK:  # otherwise it was written off already
            self.outcomes[Fenced.WRITTEN_OFF] += 1
            log.warning("host_fenced", cell=self._cell.name, host=begun.host)

    async def _failed(self, begun: FencingBegun, outcome: Fenced, reason: str) -> None:
        self.outcomes[outcome] += 1
        log.warning("fencing_failed", cell=self._cell.name, host=begun.host, problem=reason)
        await self._cell.store.fencing.failed(begun, reason)


class FenceFailed(Exception):
    """The command has proved nothing. The message says why, in one line."""


class FenceCommand:
    """Runs the fence command for one host at a time, or for several at once."""

    def __init__(self, command: str, timeout_s: float) -> None:
        self._command, self._timeout_s = split_command("fence", command), timeout_s

    def check(self) -> None:
        """Raise InvalidRequest if the command cannot be started, as things are."""
        check_command("fence", f"{PREFIX}FENCE", self._command[0], os.environ.get("PATH"))

    async def run(self, host: str) -> None:
        """Return once the command has proved that the host's machine is off. Raises FenceFailed."""
        with tempfile.TemporaryFile() as output:
            try:
                process = await start(
                    [*self._command, host], _environment(), asyncio.subprocess.DEVNULL, output, output
                )
            except (OSError, ValueError) as error:
                raise FenceFailed(f"{self._command[0]} cannot be run: {error}") from error
            try:
                code = await exit_code(process, self._timeout_s)
            except TimeoutError:
                raise FenceFailed(f"no answer within {self._timeout_s:g} s: {_last_line(output)}") from None
            if code != 0:
                raise FenceFailed(f"exit code {code}: {_last_line(output)}")


def _environment() -> Mapping[str, str]:
    """Return this process' environment without the settings of redsched: those may hold the store's password."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}


def _last_line(output: IO[bytes]) -> str:
    output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL_BYTES))
    lines = output.read().decode(errors="replace").splitlines()
    text = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
    return plain_text(text)[:MAX_LINE]
