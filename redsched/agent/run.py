"""Run an agent: the entry point of `redsched agent` and `redsched up`."""

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

from redsched import aio, logs, tracing
from redsched.agent.agent import MAX_HOOKS, Agent
from redsched.agent.claims.runtime_limits import OfflineLimits
from redsched.agent.collectors.base import Collector, StaticCollector
from redsched.agent.collectors.local_file import LocalFile
from redsched.agent.hooks.base import Hook, NoHook
from redsched.agent.hooks.command import CommandHook
from redsched.agent.hooks.http import UrlHook
from redsched.agent.journal.journal import Journal, open_journal, placements_beside
from redsched.agent.link import AgentLink, StoreLink
from redsched.errors import Forbidden, InvalidRequest, NotFound, Unauthenticated, Unavailable
from redsched.model import HostReport
from redsched.release import release
from redsched.settings import Settings
from redsched.store.store import Store
from redsched.store.topology.url import without_password

CONNECT_AGAIN_S = 2.0
MAX_FILE_NAME = 200
"""Pause before a starting agent connects again that must not exit, because it has work to stop in time."""

_MAY_PASS = (Unavailable, Unauthenticated, Forbidden, NotFound)
"""What ends by itself, or when an operator replaces a token, restores rights or restarts an API with all cells."""

_log = logs.get_logger("redsched.agent")


async def run(
    settings: Settings,
    url: str,
    hosts: Sequence[Collector | HostReport],
    journal: Path | None = None,
    ready: asyncio.Event | None = None,
) -> None:
    """Run the agent of `hosts` until cancelled; `ready` is set once each of them is open for claims.

    It uses the API that the settings name, or else the store at `url`.

    When the agent ends, work keeps running, and the next process with the same journal finds it. Raises OtherAgent if
    other agents have all of the hosts, InvalidRequest for invalid hosts or settings, or if the journal has placements
    of other hosts (`Journal.represent`), JournalBroken, and what connecting raises: Unavailable if the store or API
    cannot be used at the start, and Unauthenticated, Forbidden or NotFound if the API refuses the agent, or the first
    report of a host. During later outages the agent retries, and also at the start while its journal has work that it
    must stop in time.
    """
    collectors: list[Collector] = [StaticCollector(host) if isinstance(host, HostReport) else host for host in hosts]
    _check(collectors, settings)
    hook = hook_of(settings)
    local = LocalFile(Path(settings.local), [one.name for one in collectors]) if settings.local else None
    path = journal or default_journal(settings, collectors)
    if settings.tracing:
        tracing.start("redsched-agent")
    pages = open_journal(path)
    try:
        pages.represent({one.name: one.cell for one in collectors})
        _warn_of_others(path)
        limits = OfflineLimits(pages, hook, {one.name: one.cell for one in collectors}, asyncio.Semaphore(MAX_HOOKS))
        async with AsyncExitStack() as stack:
            link = await _connected(stack, limits, lambda: _link(settings, url, collectors, not limits.has_work))
            _log.info("agent started", **_identity(settings, url, collectors, path, pages))
            stack.callback(_log.info, "agent stopped, its work continues", **_hosts(collectors))
            agent = Agent(link, pages, settings, hook, collectors, ready or asyncio.Event(), local)
            await agent.run()
    finally:
        await pages.close()
        if settings.tracing:
            tracing.stop()


def _warn_of_others(path: Path) -> None:
    """Log the journals beside this one that have claims and that no agent has open: a host may have been renamed."""
    for host, placements in placements_beside(path).items():
        _log.warning(
            "a journal that no agent uses has claims", host=host, placements=placements, folder=str(path.parent)
        )


def _identity(
    settings: Settings, url: str, collectors: Sequence[Collector], path: Path, journal: Journal
) -> dict[str, object]:
    """Return what an agent logs of itself when it starts. Its zone follows with its first report."""
    return {
        "actor": "",
        "release": release(),
        **_hosts(collectors),
        "link": settings.api or without_password(url),
        "journal": str(path),
        "placements": sum(len(page.held) for page in journal.pages.values()),
        # The query of a URL may have a secret in it.
        "hook": without_password(settings.hook).partition("?")[0] or "none, claims are confirmed at once",
    }


def _hosts(collectors: Sequence[Collector]) -> dict[str, object]:
    if len(collectors) == 1:
        return {"host": collectors[0].name, "cell": collectors[0].cell}
    return {"hosts": len(collectors), "first": collectors[0].name}


async def _connected(
    stack: AsyncExitStack, limits: OfflineLimits, connect: Callable[[], AbstractAsyncContextManager[AgentLink]]
) -> AgentLink:
    """Connect, and stop work meanwhile whose time is up.

    If that fails and there is such work, now or later, it is tried again. Else it raises Unavailable, Unauthenticated,
    Forbidden or NotFound. Raises InvalidRequest for settings that cannot be used.
    """
    stopping = asyncio.create_task(limits.run())
    try:
        while True:
            try:
                return await stack.enter_async_context(connect())
            except _MAY_PASS as error:
                if not limits.has_work:
                    raise
                _log.warning("not connected yet, but there is work to stop in time", reason=str(error))
            await asyncio.sleep(CONNECT_AGAIN_S)
    finally:
        await aio.end(stopping)


@asynccontextmanager
async def _link(
    settings: Settings, url: str, collectors: Sequence[Collector], ends_if_refused: bool
) -> AsyncIterator[AgentLink]:
    """Connect to the API, if the settings name one, or else to the store."""
    if not settings.api:
        async with Store.connect(url, settings) as store:
            yield StoreLink(store)
        return
    from redsched.agent.rest import RestLink  # most agents use the store

    cells, hosts = {one.cell for one in collectors}, [one.name for one in collectors]
    async with RestLink.connect(settings, cells, ends_if_refused, hosts) as link:
        yield link


def hook_of(settings: Settings) -> Hook:
    """Return the hook that the settings name. Raises InvalidRequest, also for a command that does not exist."""
    if not settings.hook:
        return NoHook()
    if settings.hook.startswith(("http:", "https:")):
        return UrlHook(settings.hook, settings.hook_timeout_s)
    command = CommandHook(settings.hook, settings.hook_timeout_s, settings.hook_env)
    command.check()
    return command


def default_journal(settings: Settings, collectors: Sequence[Collector | HostReport]) -> Path:
    """Return the path of the journal: as configured, else in the user's state directory, named after the host."""
    if settings.journal:
        return Path(settings.journal)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    name = collectors[0].name if len(collectors) == 1 else "fleet"
    return Path(state) / "redsched" / f"{_file_name(name)}.sqlite"


def _file_name(host: str) -> str:
    """Return a name for a file of a host, with room for suffixes: the files of most systems have up to 255 bytes."""
    if len(host) <= MAX_FILE_NAME:
        return host
    return f"{host[:MAX_FILE_NAME]}-{hashlib.sha256(host.encode()).hexdigest()[:16]}"


def _check(collectors: Sequence[Collector], settings: Settings) -> None:
    if not collectors:
        raise InvalidRequest("an agent needs at least one host to speak for")
    name, times = Counter(collector.name for collector in collectors).most_common(1)[0]
    if times > 1:
        raise InvalidRequest(f"host {name!r} is given {times} times: names must be unique")
    for collector in collectors:
        if collector.cell not in settings.cells:
            raise InvalidRequest(
                f"host {collector.name!r} is in cell {collector.cell!r}, which is not one of "
                f"{', '.join(settings.cells)}: add it to REDSCHED_CELLS"
            )
