"""`redsched host show`, `drain`, `enable`, `disable`, `write-off`, `remove`."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from redsched.cli import confirmation, options
from redsched.cli.confirmation import Yes
from redsched.cli.fleet import ANYWHERE, Fleet, Where, with_fleet
from redsched.cli.options import AsJson, HostArgument, about, seconds
from redsched.cli.output import formats, tables
from redsched.cli.output.formats import host_text, in_names
from redsched.cli.verbs.drain_progress import until_empty
from redsched.errors import ClaimState, InvalidRequest, NotFound, Settling
from redsched.model import MAX_DEADLINE_S, AtDeadline
from redsched.model.record import json_of
from redsched.model.records.hosts import HostView, SlotView
from redsched.requests.verbs import DisableBody, DrainBody, LostBody
from redsched.wording import counted

SLOT_HEADS = ("SLOT", "CAPACITY", "CLAIMED", "EXTERNAL", "FREE", "KEPT", "TOTAL", "RESERVED", "RATIO")
UNMOVABLE_HEADS = ("UNMOVABLE CLAIM", "REASON")
FAILED_HEADS = ("CLAIM", "FAILED MOVES", "NEXT MOVE", "LAST FAILURE")
MOVING = {"move": "moved to", "evacuate": "evacuated to"}
POOL_HEADS = ("POOL", "PARENT", "TRAITS", "DEVICE")

Reason = Annotated[
    str, typer.Option("--reason", help="Why, as one line: shown until the host is enabled.", show_default=False)
]
InCell = Annotated[
    str,
    typer.Option("--cell", help="Its cell: needed only if two cells have a host with this name.", show_default=False),
]
UntilEmpty = Annotated[int, seconds("--wait", most=MAX_DEADLINE_S, help="How long to wait until the host is empty.")]


def show(name: HostArgument, as_json: AsJson = False, cell: InCell = "", where: Where = ANYWHERE) -> None:
    """Show one host: its slots, pools, traits, labels, metrics and aggregates.

    While it is drained or evacuated, also show what is left to move.
    """
    with _names_cell():
        view = with_fleet(where, lambda s: s.hosts.get(name, cell), read_only=True)
    if as_json:
        return tables.show_json(json_of(view))
    claims = counted(view.claims, "claim")
    tables.say(f"{view.name}  cell {view.cell}  zone {view.zone}  {host_text(view)}  {claims}")
    if view.status_reason:
        tables.say(f"reason: {view.status_reason}")
    _show_draining(view)
    tables.show_table(SLOT_HEADS, (slot_row(slot, one) for slot, one in in_names(view.slots)), "no slots")
    if view.pools:
        rows = ((name, pool.parent, " ".join(sorted(pool.traits)), pool.device) for name, pool in in_names(view.pools))
        tables.show_table(POOL_HEADS, rows, "")
    if view.reservation:
        until = formats.time_and_age(view.reservation_until_ms or 0)
        tables.say(f"{tables.amounts(view.kept)} {view.kept_for.text} that waits, renewed until {until}")
    _say("labels", (f"{key}={value}" for key, value in sorted(view.labels.items())))
    _say("traits", sorted(view.traits))
    _say("metrics", (f"{key}={value:g}" for key, value in sorted(view.metrics.items())))
    _say("aggregates", sorted(view.aggregates))
    return None


def _say(what: str, words: Iterable[str]) -> None:
    tables.say(f"{what}: {' '.join(words) or formats.NOTHING}")


def _show_draining(found: HostView) -> None:
    if not found.claims:
        if found.draining or found.drain_deadline_ms is not None:
            print("no claims are left on it")
    elif found.draining == "stop":
        passed = formats.time_and_age(found.drain_deadline_ms or 0)
        print(f"drain deadline passed at {passed}: remaining claims are being stopped")
    elif found.draining:
        _show_moving(found)
    elif found.drain_deadline_ms is not None:
        print(f"drain deadline passed at {formats.time_and_age(found.drain_deadline_ms)}: the remaining claims stay")


def _show_moving(found: HostView) -> None:
    print(f"its claims are being {MOVING[found.draining]} other hosts")
    if found.drain_deadline_ms is not None:
        deadline = formats.time_and_age(found.drain_deadline_ms)
        print(f"drain deadline: {deadline}, then {found.drain_then} the remaining claims")
    if found.unmovable:
        rows = ((one.claim_id, one.reason) for one in found.unmovable)
        tables.show_table(UNMOVABLE_HEADS, rows, "")
    if found.failed_moves:
        moves = (
            (one.claim_id, one.count, formats.At(one.next_at_ms), tables.first_line(one.reason))
            for one in found.failed_moves
        )
        tables.show_table(FAILED_HEADS, moves, "")


def drain(
    name: HostArgument,
    move: Annotated[bool, typer.Option("--move", help=about(DrainBody, "move"))] = False,
    deadline: Annotated[
        int,
        seconds("--deadline", most=MAX_DEADLINE_S, help="Time for which claims are moved, such as 90m; 0: no limit."),
    ] = 0,
    then: Annotated[
        AtDeadline | None,
        typer.Option("--then", help="What to do with the remaining claims at the deadline. Default: keep."),
    ] = None,
    reason: Reason = "",
    wait: UntilEmpty = 0,
    cell: InCell = "",
    where: Where = ANYWHERE,
) -> None:
    """Stop new claims on this host and empty it.

    With --move, its claims are moved to other hosts; without it, they stay until they end.
    """

    _refuse_half(name, move, deadline, then)

    async def drained(fleet: Fleet) -> None:
        await fleet.hosts.drain(name, move, deadline, then, reason=reason, cell=cell)
        print(f"{name} is draining", flush=True)
        if not move:
            await _say_what_stays(fleet, name, cell)
        await _watch(fleet, name, move, wait, cell)

    with _names_cell():
        with_fleet(where, drained)


def _refuse_half(name: str, move: bool, deadline: int, then: AtDeadline | None) -> None:
    """Raise InvalidRequest for an option without the one that it belongs to, with the whole command."""
    if deadline and not move:
        raise InvalidRequest(
            "--deadline limits how long claims are moved: "
            f"use `redsched host drain {name} --move --deadline {deadline}`"
        )
    if then and not deadline:
        raise InvalidRequest(
            f"--then applies at the deadline: use `redsched host drain {name} --move --deadline 600 --then {then}`"
        )


def enable(name: HostArgument, cell: InCell = "", where: Where = ANYWHERE) -> None:
    """Allow new claims on this host again."""
    with _names_cell():
        with_fleet(where, lambda s: s.hosts.enable(name, cell=cell), on_demand=True)
    print(f"{name} is enabled")


def disable(
    name: HostArgument,
    reason: Reason = "",
    ahead: Annotated[bool, typer.Option("--ahead", help=about(DisableBody, "ahead"))] = False,
    cell: InCell = "",
    where: Where = ANYWHERE,
) -> None:
    """Stop new claims on this host; existing claims stay."""

    async def disabled(fleet: Fleet) -> None:
        await fleet.hosts.disable(name, reason=reason, ahead=ahead, cell=cell)
        if ahead and not await _is_known(fleet, name, cell):
            print(f"{name} will be disabled from its first report on", flush=True)
            return
        print(f"{name} is disabled", flush=True)
        await _say_what_stays(fleet, name, cell)

    with options.names_option("use ahead", f"use `redsched host disable {name} --ahead`"), _names_cell():
        with_fleet(where, disabled, on_demand=True)


async def _is_known(fleet: Fleet, name: str, cell: str) -> bool:
    try:
        await fleet.hosts.get(name, cell)
    except (NotFound, Settling):
        return False
    return True


def write_off(
    name: HostArgument,
    evacuate: Annotated[bool, typer.Option("--evacuate", help=about(LostBody, "evacuate"))] = False,
    force: Annotated[bool, typer.Option("--force", help=about(LostBody, "force"))] = False,
    reason: Reason = "",
    wait: UntilEmpty = 0,
    yes: Yes = False,
    cell: InCell = "",
    where: Where = ANYWHERE,
) -> None:
    """Write this host off, because it will not come back.

    Refused while its lease is valid, unless forced.
    """
    if wait and not evacuate:
        raise InvalidRequest(
            f"--wait is for claims that are moved: use `redsched host write-off {name} --evacuate --wait {wait}`"
        )

    def consequence() -> str:
        found = with_fleet(where, lambda s: s.hosts.get(name, cell), read_only=True)
        if found.alive and not force:
            return ""  # it will be refused
        what = "its claims are started on other hosts" if evacuate else "its claims can be released, which frees them"
        return (
            f"Host {name} will be written off: {what}, although their work runs twice if the machine is not off. "
            f"{confirmation.claims_on(where, name, cell)}"
        )

    async def written_off(fleet: Fleet) -> None:
        try:
            await fleet.hosts.write_off(name, evacuate, force, reason=reason, cell=cell)
        except ClaimState as error:
            if error.facts.lease_ms is None:
                raise
            raise _alive(error, name, evacuate) from error
        print(f"{name} is written off", flush=True)
        await _watch(fleet, name, evacuate, wait, cell)

    with _names_cell():
        confirmation.ask(yes, consequence)
        with_fleet(where, written_off)


def _alive(error: ClaimState, name: str, evacuate: bool) -> ClaimState:
    """Return the error for writing off a host that is alive, with the commands that help."""
    lease_s = -(-error.facts.lease_ms // 1000)
    forced = f"redsched host write-off {name}{' --evacuate' if evacuate else ''} --force"
    return ClaimState(
        f"host {name} is alive: its lease runs for {lease_s} s. Empty it with `redsched host drain {name} --move`; "
        f"or stop its agent and try again once the lease has run out; only if its machine is off, use `{forced}`",
        error.facts,
    )


def remove(
    name: HostArgument,
    force: Annotated[
        bool,
        typer.Option("--force", help="Remove it even if its lease is valid or it holds claims, which end with it."),
    ] = False,
    yes: Yes = False,
    cell: InCell = "",
    where: Where = ANYWHERE,
) -> None:
    """Remove this host. Refused while it holds claims or its lease is valid, unless forced.

    Another cell may have its name then.
    """
    confirmation.ask(
        yes or not force,
        lambda: f"Host {name} will be removed, and its claims end. {confirmation.claims_on(where, name, cell)}",
    )
    with options.names_force(f"redsched host remove {name}{f' --cell {cell}' if cell else ''} --force"), _names_cell():
        with_fleet(where, lambda s: s.hosts.remove(name, force, cell=cell), on_demand=True)
    print(f"{name} is removed")


@contextmanager
def _names_cell() -> Iterator[None]:
    """Name the option in the error about a host that is in two cells; the command may have others."""
    try:
        yield
    except ClaimState as error:
        if not (cells := error.facts.cells):
            raise
        either = " or ".join(f"`--cell {one}`" for one in cells)
        raise ClaimState(error.detail.replace("name one of them as `cell`", f"add {either}"), error.facts) from error


async def _watch(fleet: Fleet, name: str, moving: bool, timeout_s: int, cell: str) -> None:
    """Wait until the host is empty, or print the command that shows its progress."""
    if timeout_s:
        await until_empty(fleet, name, timeout_s, cell)
    elif moving:
        print(f"its claims are being moved: `redsched host show {name}` shows the progress")


async def _say_what_stays(fleet: Fleet, name: str, cell: str) -> None:
    """Print what happens to the claims that are on a host which gets no new ones."""
    number = (await fleet.hosts.get(name, cell)).claims
    if number:
        stays = "its claim stays until it ends" if number == 1 else f"its {number} claims stay until they end"
        lists = f"`redsched claim list --host {name}` shows {'it' if number == 1 else 'them'}"
        moves = f"`redsched host drain {name} --move` moves {'it' if number == 1 else 'them'} to other hosts"
        tables.say(f"{stays}: {lists}; {moves}")


def slot_row(slot: str, one: SlotView) -> tuple[object, ...]:
    """Return the row of a slot under SLOT_HEADS."""
    amounts = one.capacity, one.claimed, one.external, one.free, one.kept or None, one.total, one.reserved
    return (slot, *amounts, f"{one.allocation_ratio:g}")
