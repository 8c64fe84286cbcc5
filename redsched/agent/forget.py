"""Forget a device that does not come back, so that another one may get the name of its pool."""

from collections.abc import Sequence
from pathlib import Path

from redsched.agent.collectors.base import Collector
from redsched.agent.journal.journal import MAX_NAMED, Journal, open_journal
from redsched.agent.run import default_journal
from redsched.errors import ClaimState, InvalidRequest
from redsched.model import HostReport
from redsched.settings import Settings


async def forget_device(settings: Settings, hosts: Sequence[Collector | HostReport], pool: str) -> str:
    """Delete the device of a pool from the journal of the hosts' agent, and return its id.

    `pool`: its name, or `HOST/POOL` where the agent represents several hosts. Raises InvalidRequest for a pool that has
    no device, ClaimState if a claim holds it, OtherAgent while the agent runs, JournalBroken.
    """
    names = [one.name for one in hosts]
    host, _, name = pool.rpartition("/")
    host = host or (names[0] if len(names) == 1 else "")
    if host not in names:
        raise InvalidRequest(
            f"pool {pool!r} is of no host of this agent: use HOST/POOL, with a host such as {names[0]}"
        )
    journal = open_journal(_path(settings, hosts))
    try:
        device = _device(journal, host, name)
        _check_unused(journal, host, name, device)
        left = {one: found for one, found in journal.devices[host].items() if one != name}
        await journal.write_devices(host, left)
    finally:
        await journal.close()
    return device


def _path(settings: Settings, hosts: Sequence[Collector | HostReport]) -> Path:
    path = default_journal(settings, hosts)
    if not path.exists():
        raise InvalidRequest(f"there is no journal {path}: set REDSCHED_JOURNAL to that of the agent")
    return path


def _device(journal: Journal, host: str, pool: str) -> str:
    known = journal.devices.get(host, {})
    if pool not in known:
        named = ", ".join(f"{name} ({device})" for name, device in known.items()) or "none"
        raise InvalidRequest(
            f"the journal {journal.path} has no device of pool {pool!r}; those of host {host}: {named}"
        )
    return known[pool]


def _check_unused(journal: Journal, host: str, pool: str, device: str) -> None:
    held = sorted(one.id for one in journal.pages[host].held.values() if pool in journal.devices_of(host, one))
    if held:
        named = ", ".join(held[:MAX_NAMED])
        raise ClaimState(
            f"{len(held)} claim{'s hold' if len(held) > 1 else ' holds'} amounts of pool {pool}, which is device "
            f"{device}: {named}. Start the agent, release or move them, stop it, and try again"
        )
