"""Run many hosts in one process: schedule their heartbeats, observations, inbox reads and comparisons.

No host has a task of its own. Four loops serve the hosts that are due, so ten thousand idle hosts cost little more than
their heartbeats. Calls of hosts that are due together share a round trip.
"""

import asyncio
import random
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from redsched import logs, origin
from redsched.agent.backoff import StoreBackoff
from redsched.agent.claims.context import LifecycleContext
from redsched.agent.claims.runtime_limits import RuntimeLimits
from redsched.agent.claims.steps import ClaimSteps
from redsched.agent.claims.tasks import ClaimTasks
from redsched.agent.claims.work_monitor import WorkMonitor
from redsched.agent.collectors.base import Collector
from redsched.agent.collectors.local_file import LocalFile
from redsched.agent.hooks.base import Hook
from redsched.agent.host_session import Host
from redsched.agent.inbox import InboxWatch
from redsched.agent.journal.journal import Journal
from redsched.agent.link import AgentLink, CellLink
from redsched.agent.monitor import HostMonitor
from redsched.agent.timers import TimerQueue
from redsched.aio import end_all, finish
from redsched.errors import Forbidden, OtherAgent, RedschedError, Unauthenticated, Unavailable
from redsched.model import Claim
from redsched.model.limits import MAX_CALL_CLAIMS, MAX_CALL_HOSTS
from redsched.origin import Origin, agent_of
from redsched.settings import Settings
from redsched.store.agent_calls import ClaimIdsCall, ClaimsCall, InboxesCall

MAX_AT_ONCE = 128
"""The most hosts that call the store at the same time."""

MAX_HOOKS = 16
MAX_READ = MAX_CALL_HOSTS
"""The most hosts whose inboxes or claims are read in one round trip."""

MAX_CLAIMS_READ = MAX_CALL_CLAIMS
AGAIN_S = 5.0
"""Pause before a host retries after an error other than an unavailable store."""

SPREAD_S = 0.5
PRUNE_S = 60.0

_log = logs.get_logger("redsched.agent")


@dataclass(eq=False)
class Agent:
    """The hosts of one process. `ready` is set once every host has been open for claims."""

    link: AgentLink
    journal: Journal
    settings: Settings
    hook: Hook
    collectors: Sequence[Collector]
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    local_file: LocalFile | None = None

    def __post_init__(self) -> None:
        self.backoff = StoreBackoff()
        self.hosts: dict[str, Host] = {}
        self._by_cell: defaultdict[str, dict[str, Host]] = defaultdict(dict)
        self._claim_tasks: dict[str, ClaimTasks] = {}
        self._beats, self._looks = TimerQueue[Host](), TimerQueue[Host]()
        self._inboxes, self._compares = TimerQueue[Host](), TimerQueue[Host]()
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._turns: set[asyncio.Task[None]] = set()
        self._unopened: set[str] = set()
        self._fatal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        nonce, hooks = uuid.uuid4().hex, asyncio.Semaphore(MAX_HOOKS)
        for collector in self.collectors:
            self._add(collector, nonce, hooks)

    def _add(self, collector: Collector, nonce: str, hooks: asyncio.Semaphore) -> None:
        cell, monitor = self.link.cell(collector.cell), HostMonitor(collector, self.journal, self.local_file)
        host = Host(cell, monitor, self.journal, self.settings, nonce, self._opened, self._closed)
        steps = ClaimSteps(LifecycleContext(host, self.backoff, self.hook, hooks))
        self._claim_tasks[host.name] = ClaimTasks(steps, lambda: self._inboxes.set(host, 0.0))
        self.hosts[host.name] = self._by_cell[cell.name][host.name] = host
        self._unopened.add(host.name)
        self._beats.set(host, 0.0)
        if (period_s := monitor.period_s(self.settings.collect_s)) is not None:
            self._looks.set(host, period_s)

    async def run(self) -> None:
        """Run until cancelled.

        Raises OtherAgent when other agents have taken over every host, JournalBroken when the journal fails, Forbidden
        or Unauthenticated when the API refuses the first report of a host.
        """
        loops = [self._each(self._beats, self._sync), self._each(self._looks, self._observe), self._prune()]
        for name, hosts in self._by_cell.items():
            on_epoch = partial(self._compare_filled, hosts)
            watch = InboxWatch(self.backoff, hosts, self.settings.poll_s, self._handle_inbox, on_epoch)
            loops.append(self.link.watch(name, watch))
        loops += [self._read_inboxes(), self._compare()]
        loops.append(RuntimeLimits(self.journal, self.hosts, self._claim_tasks).run())
        loops.append(WorkMonitor(self.hosts, self._claim_tasks, self.settings.work_watch_s).run())
        tasks = [asyncio.create_task(self._guard(loop)) for loop in [*loops, self._journal_breaks()]]
        try:
            await self._fatal
        finally:
            await finish(self._close(tasks))

    async def _close(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        await end_all([*tasks, *self._turns])
        await asyncio.gather(*(claim_tasks.close() for claim_tasks in self._claim_tasks.values()))

    async def _guard(self, loop: Coroutine[None, None, None]) -> None:
        """Run a loop, and end the agent if it fails: the agent must not continue without one of its loops."""
        try:
            await loop
        except RedschedError as error:
            self._end(error)
        except Exception as error:
            _log.exception("a loop of the agent failed")
            self._end(error)

    async def _journal_breaks(self) -> None:
        await self.journal.failed.wait()
        self.journal.check()

    def _end(self, error: Exception) -> None:
        if not self._fatal.done():
            self._fatal.set_exception(error)

    # -- heartbeats and observations

    async def _each(self, turns: TimerQueue[Host], act: Callable[[Host], Awaitable[float]]) -> None:
        while True:
            await self.backoff.ready()
            for host in await turns.due(MAX_AT_ONCE):
                await self._slots.acquire()
                task = asyncio.create_task(self._turn(turns, host, act))
                self._turns.add(task)
                task.add_done_callback(self._turn_done)

    def _turn_done(self, task: asyncio.Task[None]) -> None:
        self._turns.discard(task)
        self._slots.release()

    async def _turn(self, turns: TimerQueue[Host], host: Host, act: Callable[[Host], Awaitable[float]]) -> None:
        origin.enter(Origin(agent_of(host.name)))
        try:
            next_s = await act(host)
        except OtherAgent as error:
            self._stop_host(host, error)
            return
        except (Unauthenticated, Forbidden) as error:  # raised only for a token that was never accepted
            self._end(error)
            return
        except Unavailable as error:
            self.backoff.failed(error)
            next_s = 0.0
        except (RedschedError, OSError) as error:
            _log.error("host task failed", host=host.name, error=str(error))
            next_s = AGAIN_S
        except Exception:
            _log.exception("host task failed", host=host.name)
            next_s = AGAIN_S
        if host.name in self.hosts:
            turns.set(host, next_s)

    async def _sync(self, host: Host) -> float:
        await host.sync()
        self.backoff.succeeded()
        return host.next_beat_s()

    async def _observe(self, host: Host) -> float:
        await host.observe()
        self._claim_tasks[host.name].find_local(host.monitor.local)
        return host.monitor.period_s(self.settings.collect_s) or AGAIN_S

    # -- inboxes and comparisons

    async def _read_inboxes(self) -> None:
        while True:
            for cell, hosts in _by_cell(await self._inboxes.due(MAX_READ)):
                await self._read_inboxes_of(cell, [host for host in hosts if host.epoch])

    async def _read_inboxes_of(self, cell: CellLink, hosts: list[Host]) -> None:
        if not hosts:
            return
        names = [host.name for host in hosts]
        found = await self.backoff.call(lambda: cell.call(InboxesCall(dict.fromkeys(names, ""))))
        ids = {entry.claim_id for entries in found.entries.values() for entry in entries}
        claims = await self._read_claims(cell, names, ids)
        for name, entries in found.entries.items():
            if name in self.hosts:
                self._claim_tasks[name].read_inbox(entries, claims)

    async def _compare(self) -> None:
        while True:
            for cell, hosts in _by_cell(await self._compares.due(MAX_READ)):
                await self._compare_hosts(cell, [host for host in hosts if host.epoch])
                for host in hosts:
                    if host.name in self.hosts:
                        self._compares.set(host, self.settings.compare_s * random.uniform(0.8, 1.2))

    async def _compare_hosts(self, cell: CellLink, hosts: list[Host]) -> None:
        if not hosts:
            return
        names = [host.name for host in hosts]
        ids = (await self.backoff.call(lambda: cell.call(ClaimIdsCall(tuple(names))))).ids
        claims = await self._read_claims(cell, names, set().union(*ids.values()))
        for host in hosts:
            if host.name in self.hosts:
                held = ids[host.name]
                host.monitor.forget_unknown(claims[one] for one in held & claims.keys())
                self._claim_tasks[host.name].compare(held, claims)
                self._claim_tasks[host.name].find_local(host.monitor.local)

    async def _read_claims(self, cell: CellLink, hosts: Sequence[str], ids: Iterable[str]) -> dict[str, Claim]:
        wanted, found = sorted(ids), dict[str, Claim]()
        for first in range(0, len(wanted), MAX_CLAIMS_READ):
            call = ClaimsCall(tuple(hosts), tuple(wanted[first : first + MAX_CLAIMS_READ]))
            found |= await self.backoff.call(lambda call=call: cell.call(call))  # type: ignore[misc]
        return found

    async def _prune(self) -> None:
        while True:
            await asyncio.sleep(PRUNE_S)
            self.journal.prune()

    # -- callbacks of hosts and of the inbox watcher

    def _opened(self, host: Host, drop: Iterable[str]) -> None:
        was_waiting = bool(self._unopened)
        self._unopened.discard(host.name)
        if was_waiting and not self._unopened:
            _log.info("every host is open for claims", actor="", **self._who())
            self.ready.set()
        self._claim_tasks[host.name].drop(drop)
        self._inboxes.set(host, 0.0)
        self._compares.set(host, 0.0)

    def _who(self) -> dict[str, object]:
        """Return the hosts of this agent, for the log; of a single one its name and zone."""
        if len(self.hosts) > 1:
            return {"hosts": len(self.hosts)}
        [host] = self.hosts.values()
        return {"host": host.name, "zone": host.monitor.report.zone if host.monitor.report else ""}

    def _closed(self, host: Host) -> None:
        if not host.epoch:
            # One log line for all hosts: ten thousand of them leave an epoch together.
            if not self._unopened:
                _log.info("hosts have to attest again", actor="", first=host.name)
            self._unopened.add(host.name)
        self._beats.set(host, random.uniform(0.0, SPREAD_S))

    def _handle_inbox(self, name: str) -> None:
        self._inboxes.set(self.hosts[name], 0.0)

    def _compare_filled(self, hosts: Mapping[str, Host]) -> None:
        for host in hosts.values():
            self._inboxes.set(host, 0.0)
            self._beats.set(host, random.uniform(0.0, SPREAD_S))

    def _stop_host(self, host: Host, error: OtherAgent) -> None:
        """Stop serving a host that another agent has taken over. Its work keeps running."""
        _log.error("another agent speaks for this host, stopping", host=host.name, reason=str(error))
        self.hosts.pop(host.name, None)
        self._by_cell[host.cell.name].pop(host.name, None)
        self._unopened.discard(host.name)
        for turns in (self._beats, self._looks, self._inboxes, self._compares):
            turns.drop(host)
        closing = asyncio.create_task(self._claim_tasks[host.name].close())
        self._turns.add(closing)
        closing.add_done_callback(self._turns.discard)
        if not self.hosts:
            self._end(error)


def _by_cell(hosts: Iterable[Host]) -> list[tuple[CellLink, list[Host]]]:
    groups: dict[str, tuple[CellLink, list[Host]]] = {}
    for host in hosts:
        groups.setdefault(host.cell.name, (host.cell, []))[1].append(host)
    return list(groups.values())
