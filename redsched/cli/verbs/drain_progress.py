"""Wait until a drained or evacuated host is empty, and show the progress: `--wait` of `redsched host`."""

import asyncio

from redsched import aio
from redsched.cli.fleet import Fleet
from redsched.cli.output import tables
from redsched.errors import ClaimState, Unavailable
from redsched.model.records.hosts import DrainState, HostView

LOOK_EVERY_S = 0.5


async def until_empty(fleet: Fleet, name: str, timeout_s: int, cell: str = "") -> None:
    """Return when the host holds no claims. Raises ClaimState if it is not empty in time, or will not become empty."""
    until_s, printed = aio.now_s() + timeout_s, ""
    while True:
        found, line = await _look(fleet, name, cell)
        if line != printed:
            tables.say(line)
            printed = line
        if found is not None and not found.claims:
            return
        if found is not None:
            _refuse_ended(found)
        if aio.now_s() >= until_s:
            raise ClaimState(
                f"host {name} is not empty after {timeout_s} s: `redsched host show {name}` shows what is left"
            )
        await asyncio.sleep(min(LOOK_EVERY_S, max(0.0, until_s - aio.now_s())))


async def _look(fleet: Fleet, name: str, cell: str) -> tuple[HostView | None, str]:
    """Return the host (None if the store is unavailable) and a line about it."""
    try:
        found = await fleet.hosts.get(name, cell)
    except Unavailable as error:
        return None, f"{name}: {error.detail}"
    return found, progress(found)


def progress(found: HostView) -> str:
    """Return a line about the remaining claims of a drained or evacuated host."""
    if not found.claims:
        return f"{found.name} is empty"
    left = f"{found.name}: {found.claims} claim{'s' * (found.claims > 1)} left"
    if found.draining == "stop":
        return f"{left}, the deadline has passed: being stopped"
    if found.unmovable:
        first = found.unmovable[0]
        return f"{left}, {len(found.unmovable)} unmovable: {first.claim_id}: {first.reason}"
    if found.failed_moves:
        move = found.failed_moves[0]
        return f"{left}, moves of {len(found.failed_moves)} failed: {move.claim_id}: {tables.first_line(move.reason)}"
    return left


def _refuse_ended(found: HostView) -> None:
    left = f"{found.claims} claim{'s' * (found.claims > 1)} left on it"
    if found.drain_state is DrainState.NONE:
        raise ClaimState(f"host {found.name} is no longer being emptied, because it is {found.status}: {left}")
    if found.drain_state is DrainState.OVERDUE:
        raise ClaimState(
            f"the deadline of the drain of host {found.name} has passed, with {left}: drain it again to continue"
        )
