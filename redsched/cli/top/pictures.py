"""What the screens of `redsched top` draw: bars, tables and lines, as plain functions of what was read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from redsched.cli.output import formats, tables
from redsched.cli.output.formats import claim_text, host_text as condition, in_names, natural
from redsched.cli.top.reading import HostState, State
from redsched.model import Claim, HostCondition
from redsched.model.records.capacity import CapacityRow
from redsched.model.records.events import Event
from redsched.model.records.hosts import HostView
from redsched.wording import counted

BAR, LEAST_BAR = 24, 10
CLAIMED, EXTERNAL, FREE = "█", "▒", "·"
MAX_PROBLEMS = 3
MAX_CLASSES = 6
COMMON = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")
"""Classes that are shown first."""
HOST_HEADS = ("HOST", "ZONE", "STATE", "CLAIMS", "FULLEST", "")


def headline(source: str, state: State) -> Text:
    """Return the line of the fleet's health."""
    report = state.report
    hosts = sum(one.hosts.up for one in report.cells)
    claims = sum(sum(one.claims.values()) for one in report.cells)
    healthy = Text("healthy", "bold green")
    problems = Text(counted(len(report.problems), "problem"), "bold red")
    what = f": {counted(hosts, 'host')} up, {counted(claims, 'claim')}"
    text = Text.assemble(healthy if report.healthy else problems, f"{what}  ({source})")
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def problems(state: State) -> Text:
    """Return the most serious problems, one a line; no text if there are none."""
    found = state.report.problems
    lines = [f"! {f'cell {one.cell}: ' if one.cell else ''}{one.detail}" for one in found[:MAX_PROBLEMS]]
    if found:
        more = len(found) - MAX_PROBLEMS
        lines.append(f"  {f'and {more} more; ' * (more > 0)}what to do: redsched status")
    return Text("\n".join(lines), "red", no_wrap=True, overflow="ellipsis")


def capacity(rows: Sequence[CapacityRow], width: int) -> Table:
    """Return the amounts by class with a bar for each."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head, justify in (("RESOURCE", "left"), (f"{CLAIMED} CLAIMED {EXTERNAL} EXTERNAL", "left")):
        table.add_column(head, justify=justify, no_wrap=True)  # type: ignore[arg-type] # one of the texts it takes
    for head in ("USED", "FREE", "AWAY", "TOTAL"):
        table.add_column(head, justify="right", no_wrap=True)
    classes = {name: one for row in rows for name, one in row.classes.items()}
    for name in _in_order(classes)[:MAX_CLASSES]:
        one = classes[name]
        shares = share(one.claimed, one.total), share(one.external + one.kept, one.total)
        used = Text(percent(sum(shares)), _colour(sum(shares)))
        table.add_row(name, bar(*shares, _bar_width(width)), used, f"{one.free}", f"{one.away}", f"{one.total}")
    return table


def _in_order(classes: Mapping[str, object]) -> list[str]:
    first = [name for name in COMMON if name in classes]
    return first + [name for name in classes if name not in first]


def _bar_width(width: int) -> int:
    return max(LEAST_BAR, min(BAR * 2, BAR + width - 80))


def share(amount: int, total: int) -> float:
    """Return the part of a total; 0 of nothing."""
    return amount / total if total > 0 else 0.0


def percent(part: float) -> str:
    """Format a part: `34%`."""
    return f"{round(100 * part)}%"


def bar(claimed: float, external: float, width: int) -> str:
    """Return a bar of so many characters: any use shows, and a whole bar is full."""
    claims = min(width, _cells(claimed, width))
    others = min(width - claims, _cells(external, width))
    return CLAIMED * claims + EXTERNAL * others + FREE * (width - claims - others)


def _cells(part: float, width: int) -> int:
    return max(1, round(part * width)) if part > 0 else 0


def _colour(part: float) -> str:
    return "red" if part > 1 else "yellow" if part >= 0.9 else ""


def fullest(view: HostView) -> tuple[float, str]:
    """Return the used part of the slot that is the fullest of a host, and its name."""
    slots = ((share(one.claimed + one.external, one.capacity), name) for name, one in view.slots.items())
    return max(slots, default=(0.0, ""))


_CONDITIONS = {HostCondition.UP: "", HostCondition.DRAINING: "yellow", HostCondition.DISABLED: "yellow"}
"""The colours of hosts that are not in red."""


def host_row(view: HostView, width: int) -> tuple[Text | str, ...]:
    """Return the cells of a host under HOST_HEADS."""
    part, slot = fullest(view)
    state = view.condition
    colour = _CONDITIONS.get(state, "red")
    used = Text(f"{percent(part):>4} {slot}" if slot else "", _colour(part))
    bars = bar(part, 0.0, LEAST_BAR) if width >= 100 else ""
    return Text(view.name, no_wrap=True), view.zone, Text(state, colour), Text(str(view.claims)), used, bars


ORDERS: Mapping[str, Callable[[HostView], Any]] = {
    "fullest": lambda one: -fullest(one)[0],
    "state": lambda one: list(HostCondition).index(one.condition),
    "claims": lambda one: -one.claims,
    "zone": lambda one: natural(one.zone),
    "name": lambda one: natural(one.name),
}
"""What hosts can be sorted by, each then by name."""


def matches(view: HostView, text: str) -> bool:
    """Return whether every word of a filter is a part of a host's name, zone or state."""
    words = f"{view.name} {view.zone} {view.condition}".lower()
    return all(word in words for word in text.lower().split())


def events(found: Sequence[Event], lines: int) -> Table:
    """Return the latest events, the newest last."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for _ in range(4):
        table.add_column(no_wrap=True)
    for one in found[-lines:]:
        kind = Text(one.kind, "red" if "failed" in one.kind else "")
        table.add_row(formats.At(one.at_ms).clock, kind, one.facts.get("claim", ""), one.facts.get("host", ""))
    return table


def host_text(found: HostState, width: int) -> list[Text | Table]:
    """Return the parts of the screen of one host."""
    view = found.view
    head = f"{view.name}  cell {view.cell}  zone {view.zone}  {condition(view)}"
    more = len(found.claims) < view.claims
    title = f"\n{counted(view.claims, 'claim')}{f', of which the first {len(found.claims)}' * more}"
    facts = (
        ("labels", (f"{key}={text}" for key, text in sorted(view.labels.items()))),
        ("traits", sorted(view.traits)),
    )
    lines = [Text(f"\n{what}: {' '.join(words) or formats.NOTHING}") for what, words in facts]
    return [Text(head, "bold"), Text(), _slots(view, width), Text(title, "bold"), _claims(found.claims), *lines]


def _slots(view: HostView, width: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("SLOT", no_wrap=True)
    table.add_column(f"{CLAIMED} CLAIMED {EXTERNAL} EXTERNAL", no_wrap=True)
    for head in ("USED", "FREE", "CAPACITY"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, one in in_names(view.slots):
        parts = share(one.claimed, one.capacity), share(one.external, one.capacity)
        used = Text(percent(sum(parts)), _colour(sum(parts)))
        table.add_row(name, bar(*parts, _bar_width(width)), used, str(one.free), str(one.capacity))
    return table


def _claims(found: Sequence[Claim]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in ("CLAIM", "STATE", "PROJECT", "AMOUNTS"):
        table.add_column(head, overflow="fold")
    for one in found:
        table.add_row(one.claim_id, claim_text(one), one.project or formats.NOTHING, tables.amounts(one.slots))
    return table
