"""Stop work when the time that its request allows it (`max_runtime_s`) is up, whether or not the store can be reached.

The journal has how long each placement may still run, on its own clock: a clock of the store that jumps stops nothing.
`RuntimeLimits` ends placements by the ordinary steps, which report to the store as soon
as it answers. An agent that starts while the store is away stops work by `OfflineLimits`; once it is connected, the
ordinary steps report it.
"""

import asyncio
from collections.abc import Mapping

from redsched import aio, logs
from redsched.agent.claims.stopping import as_ending
from redsched.agent.claims.tasks import ClaimTasks
from redsched.agent.hooks.base import Hook, HookFailed, HookRequest, Verb
from redsched.agent.host_session import Host
from redsched.agent.journal.journal import Journal
from redsched.model import ClaimStatus, EndReason
from redsched.pacing import paced

LOOK_S = 1.0
"""The longest pause between two checks: a placement may get a deadline that is sooner than those known."""

_log = logs.get_logger("redsched.agent")


class RuntimeLimits:
    """Ends the placements of an agent whose time is up. `hosts`: the agent's own dict: hosts leave it."""

    def __init__(self, journal: Journal, hosts: Mapping[str, Host], claim_tasks: Mapping[str, ClaimTasks]) -> None:
        self._journal = journal
        self._hosts = hosts
        self._claim_tasks = claim_tasks

    async def run(self) -> None:
        """Check whenever a time is up, until cancelled."""
        while True:
            pause_s = await self.check()
            await asyncio.sleep(pause_s)

    async def check(self) -> float:
        """Begin to end what has run for as long as it may, and return the seconds until the next check."""
        pause_s = LOOK_S
        async for host, placed in paced(list(self._journal.limits)):
            if host not in self._hosts or (left_ms := self._left_ms(self._hosts[host], placed)) is None:
                continue
            if left_ms <= 0:
                self._claim_tasks[host].end_overdue(placed)
            else:
                pause_s = min(pause_s, left_ms / 1000)
        return pause_s

    def _left_ms(self, host: Host, placed: str) -> int | None:
        left_ms, work = self._journal.left_ms(host.name, placed), self._journal.pages[host.name].held.get(placed)
        if left_ms is None and work is not None and host.epoch:
            # An earlier release has journaled it. From now on it counts on this clock.
            left_ms = host.runtime_left_ms(work)
            if left_ms is not None:
                self._journal.write_limit(host.name, placed, left_ms)
        return left_ms


class OfflineLimits:
    """Stops the work of an agent that has no connection yet. `cells`: the cell of each of its hosts.

    `hooks` limits how many hooks run at once.
    """

    def __init__(self, journal: Journal, hook: Hook, cells: Mapping[str, str], hooks: asyncio.Semaphore) -> None:
        self._journal = journal
        self._hook = hook
        self._cells = cells
        self._hooks = hooks
        self._stopped: set[tuple[str, str]] = set()

    @property
    def has_work(self) -> bool:
        """Whether any work may have to be stopped, now or later."""
        return any(key[0] in self._cells and key not in self._stopped for key in self._journal.limits)

    async def run(self) -> None:
        """Check every second, until cancelled. A stop that is interrupted is repeated by the ordinary steps."""
        while True:
            await self.check()
            await asyncio.sleep(LOOK_S)

    async def check(self) -> None:
        """Stop the work whose time is up. What cannot be stopped is tried again by the next check."""
        await aio.gather(self._stop(host, placed) for host, placed in self._overdue())

    def _overdue(self) -> list[tuple[str, str]]:
        limited = [key for key in self._journal.limits if key[0] in self._cells and key not in self._stopped]
        left_ms = {key: self._journal.left_ms(*key) for key in limited}
        return [key for key, left in left_ms.items() if left is not None and left <= 0]

    async def _stop(self, host: str, placed: str) -> None:
        work = self._journal.pages[host].held[placed]
        if work.state is not ClaimStatus.ENDING:
            work = as_ending(work, EndReason.MAX_RUNTIME)
            await self._journal.write_held(host, work)
        try:
            async with self._hooks:
                payload, devices = self._journal.payload_of(work), self._journal.devices_of(host, work)
                order = HookRequest(Verb.STOP, self._cells[host], host, work, payload=payload, devices=devices)
                await self._hook.run(order)
        except HookFailed as error:
            _log.error("work could not be stopped", host=host, claim=work.id, reason=str(error))
            return
        _log.warning("max_runtime_s has passed, work stopped without the store", host=host, claim=work.id)
        self._stopped.add((host, placed))
