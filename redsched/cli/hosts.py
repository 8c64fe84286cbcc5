"""`redsched hosts`, `host`, `drain`, `enable`, `disable`, `lost`, `forget`."""

from typing import Annotated

import typer

from redsched.api import render
from redsched.api.models.asked.verbs import MAX_DEADLINE_S
from redsched.cli import tables
from redsched.cli.draining import until_empty
from redsched.cli.options import After, AsJson, HostArgument, Limit, Url, filter_name
from redsched.cli.with_store import with_scheduler
from redsched.model import AtDeadline, HostStatus
from redsched.scheduler import HostView, Scheduler, SlotView

HEADS = ("HOST", "ZONE", "STATUS", "ALIVE", "CLAIMS", "FREE")
NONE = "no hosts: start an agent with `redsched agent`, or report one"
NONE_LEFT = "no hosts by these filters: leave them out to see all"
SLOT_HEADS = ("SLOT", "CAPACITY", "CLAIMED", "EXTERNAL", "FREE", "TOTAL", "RESERVED", "RATIO")
STUCK_HEADS = ("CLAIM", "NO OTHER PLACE BECAUSE")
FAILED_HEADS = ("CLAIM", "FAILED MOVES", "NEXT MOVE", "LAST FAILURE")
MOVING = {"move": "moved to", "evacuate": "evacuated to"}
POOL_HEADS = ("POOL", "LIES IN", "TRAITS")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (hosts, host, drain, enable, disable, lost, forget):
        app.command()(command)


def hosts(
    zone: Annotated[str, typer.Option(help="Only of this zone.", show_default=False)] = "",
    status: Annotated[HostStatus | None, typer.Option(help="Only with this status.")] = None,
    limit: Limit = 100,
    after: After = "",
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """List hosts with what is free on them."""
    wanted = filter_name("zone", zone)
    page = with_scheduler(url, lambda s: s.hosts.list(zone=wanted, status=status, limit=limit, after=after))
    if as_json:
        return tables.show_json({"hosts": [render.host(one) for one in page.items], "next": page.next})
    tables.show_table(HEADS, map(_row, page.items), NONE_LEFT if zone or status or after else NONE)
    if page.next:
        print(f"there are more: --after {page.next}")
    return None


def host(name: HostArgument, as_json: AsJson = False, url: Url = "") -> None:
    """Show one host: its slots, pools, traits, labels, metrics and aggregates; of a drain, what is left to move."""
    found = with_scheduler(url, lambda s: s.hosts.get(name))
    if as_json:
        return tables.show_json(render.host(found))
    print(f"{found.name}  cell {found.cell}  zone {found.zone}  {found.status}  {_state(found)}  {found.claims} claims")
    _show_leaving(found)
    tables.show_table(SLOT_HEADS, (slot_row(slot, one) for slot, one in sorted(found.slots.items())), "no slots")
    if found.pools:
        rows = ((name, pool.parent, " ".join(sorted(pool.traits))) for name, pool in found.pools.items())
        tables.show_table(POOL_HEADS, rows, "")
    print("labels:", " ".join(f"{key}={value}" for key, value in sorted(found.labels.items())) or tables.NOTHING)
    print("traits:", " ".join(sorted(found.traits)) or tables.NOTHING)
    print("metrics:", " ".join(f"{key}={value:g}" for key, value in sorted(found.metrics.items())) or tables.NOTHING)
    print("aggregates:", " ".join(sorted(found.aggregates)) or tables.NOTHING)
    return None


def _show_leaving(found: HostView) -> None:
    if found.leaving == "stop":
        print(f"drain deadline passed at {tables.time(found.drain_by_ms or 0)}: the remaining claims are being stopped")
    elif found.leaving:
        _show_moving(found)
    elif found.drain_by_ms is not None:
        print(f"drain deadline passed at {tables.time(found.drain_by_ms)}: the remaining claims stay")


def _show_moving(found: HostView) -> None:
    print(f"its claims are being {MOVING[found.leaving]} other hosts")
    if found.drain_by_ms is not None:
        print(f"drain deadline: {tables.time(found.drain_by_ms)}, then {found.drain_then} the remaining claims")
    if found.stuck:
        tables.show_table(STUCK_HEADS, sorted(found.stuck.items()), "")
    if found.failed_moves:
        moves = sorted(found.failed_moves.items())
        rows = ((one, m.count, tables.time(m.next_at_ms), tables.first_line(m.reason)) for one, m in moves)
        tables.show_table(FAILED_HEADS, rows, "")


def drain(
    name: HostArgument,
    move: Annotated[bool, typer.Option("--move", help="Move its claims to other hosts, a few each second.")] = False,
    deadline: Annotated[
        int,
        typer.Option("--deadline", min=0, max=MAX_DEADLINE_S, help="Seconds for which claims are moved; 0: no limit."),
    ] = 0,
    then: Annotated[
        AtDeadline | None,
        typer.Option("--then", help="What to do with the remaining claims at the deadline; the default is keep."),
    ] = None,
    wait: Annotated[
        int, typer.Option("--wait", min=0, max=MAX_DEADLINE_S, help="Seconds to wait until the host is empty.")
    ] = 0,
    url: Url = "",
) -> None:
    """Stop new claims on this host and empty it: its claims end, or are moved to other hosts with --move."""

    async def drained(scheduler: Scheduler) -> None:
        await scheduler.hosts.set_status(name, HostStatus.DRAINING, move, deadline, then)
        print(f"{name} is draining{f': {_watch(name)}' if move and not wait else ''}", flush=True)
        if wait:
            await until_empty(scheduler, name, wait)

    with_scheduler(url, drained)


def enable(name: HostArgument, url: Url = "") -> None:
    """Allow new claims on this host again."""
    _set_status(url, name, HostStatus.ENABLED)


def disable(name: HostArgument, url: Url = "") -> None:
    """Stop new claims on this host; the claims it has stay."""
    _set_status(url, name, HostStatus.DISABLED)


def lost(
    name: HostArgument,
    evacuate: Annotated[bool, typer.Option("--evacuate", help="Move its claims to other hosts, one by one.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Even though its lease runs, because its machine is off.")
    ] = False,
    url: Url = "",
) -> None:
    """Write this host off, because it will not come back. Refused while its lease runs, unless forced."""
    with_scheduler(url, lambda s: s.hosts.lost(name, evacuate, force))
    print(f"{name} is written off{f': {_watch(name)}' if evacuate else ''}")


def forget(
    name: HostArgument,
    force: Annotated[bool, typer.Option("--force", help="Even though it holds claims, which end with it.")] = False,
    url: Url = "",
) -> None:
    """Remove this host. Refused while it holds claims, unless forced."""
    with_scheduler(url, lambda s: s.hosts.forget(name, force))
    print(f"{name} is removed")


def _watch(name: str) -> str:
    return f"its claims are being moved to other hosts; `redsched host {name}` shows the progress"


def _set_status(url: str, name: str, status: HostStatus) -> None:
    with_scheduler(url, lambda s: s.hosts.set_status(name, status))
    print(f"{name} is {status}")


def _state(found: HostView) -> str:
    if found.written_off:
        return "written off"
    if not found.attested:
        return "not attested"
    return "alive" if found.alive else "down"


def _row(one: HostView) -> tuple[object, ...]:
    free = tables.amounts({slot: found.free for slot, found in one.slots.items()})
    return (one.name, one.zone, one.status, one.alive, one.claims, free)


def slot_row(slot: str, one: SlotView) -> tuple[object, ...]:
    """A slot under SLOT_HEADS."""
    return (slot, one.capacity, one.claimed, one.external, one.free, one.total, one.reserved, f"{one.ratio:g}")
