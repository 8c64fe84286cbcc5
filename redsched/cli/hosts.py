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
    """Show one host: its slots, pools, traits, labels, metrics and aggregates."""
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
        print(f"the deadline of its drain passed at {tables.time(found.drain_by_ms or 0)}: what is left is stopped")
    elif found.leaving:
        print(f"its claims are placed elsewhere ({found.leaving}); {len(found.stuck)} of them cannot be now")
        if found.drain_by_ms is not None:
            print(f"until {tables.time(found.drain_by_ms)}, then: {found.drain_then}")
        tables.show_table(("CLAIM", "WHY NOT"), sorted(found.stuck.items()), "")
    elif found.drain_by_ms is not None:
        print(f"the deadline of its drain passed at {tables.time(found.drain_by_ms)}: what is left stays")


def drain(
    name: HostArgument,
    move: Annotated[bool, typer.Option("--move", help="Place its claims elsewhere, a few each second.")] = False,
    deadline: Annotated[
        int, typer.Option("--deadline", min=0, max=MAX_DEADLINE_S, help="Seconds for which claims are moved; 0: any.")
    ] = 0,
    then: Annotated[
        AtDeadline | None, typer.Option("--then", help="What becomes of the rest at the deadline: keep it by default.")
    ] = None,
    wait: Annotated[
        int, typer.Option("--wait", min=0, max=MAX_DEADLINE_S, help="Seconds to wait until the host is empty.")
    ] = 0,
    url: Url = "",
) -> None:
    """No new claims on this host; those it has are meant to leave."""

    async def drained(scheduler: Scheduler) -> None:
        await scheduler.hosts.set_status(name, HostStatus.DRAINING, move, deadline, then)
        print(f"{name} is draining{f': {_watch(name)}' if move and not wait else ''}", flush=True)
        if wait:
            await until_empty(scheduler, name, wait)

    with_scheduler(url, drained)


def enable(name: HostArgument, url: Url = "") -> None:
    """New claims on this host again."""
    _set_status(url, name, HostStatus.ENABLED)


def disable(name: HostArgument, url: Url = "") -> None:
    """No new claims on this host; those it has stay."""
    _set_status(url, name, HostStatus.DISABLED)


def lost(
    name: HostArgument,
    evacuate: Annotated[bool, typer.Option("--evacuate", help="Place its claims elsewhere, one by one.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Although its lease runs: its machine is off.")] = False,
    url: Url = "",
) -> None:
    """Write this host off: it will not come back, and nobody waits for it. Refused while its lease runs."""
    with_scheduler(url, lambda s: s.hosts.lost(name, evacuate, force))
    print(f"{name} is written off{f': {_watch(name)}' if evacuate else ''}")


def forget(
    name: HostArgument,
    force: Annotated[bool, typer.Option("--force", help="Although it holds claims, which end with it.")] = False,
    url: Url = "",
) -> None:
    """Remove this host. Refused while it holds claims, unless forced."""
    with_scheduler(url, lambda s: s.hosts.forget(name, force))
    print(f"{name} is removed")


def _watch(name: str) -> str:
    return f"schedulers that run place its claims elsewhere, `redsched host {name}` shows how far they are"


def _set_status(url: str, name: str, status: HostStatus) -> None:
    with_scheduler(url, lambda s: s.hosts.set_status(name, status))
    print(f"{name} is {status}")


def _state(found: HostView) -> str:
    if not found.attested:
        return "not attested"
    return "alive" if found.alive else "down"


def _row(one: HostView) -> tuple[object, ...]:
    free = tables.amounts({slot: found.free for slot, found in one.slots.items()})
    return (one.name, one.zone, one.status, one.alive, one.claims, free)


def slot_row(slot: str, one: SlotView) -> tuple[object, ...]:
    """A slot under SLOT_HEADS."""
    return (slot, one.capacity, one.claimed, one.external, one.free, one.total, one.reserved, f"{one.ratio:g}")
