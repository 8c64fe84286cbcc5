"""`redsched status`: what runs, what is wrong or stuck, and what to do about it."""

import textwrap
from collections.abc import Iterator, Mapping

from redsched.cli.fleet import ANYWHERE, Where, with_fleet
from redsched.cli.options import AsJson
from redsched.cli.output import formats, tables
from redsched.model.records.status import CellStatus, ClosedHost, HostCounts, ServerStatus, StatusProblem, StatusReport
from redsched.model.units import mib
from redsched.wording import counted, duration

UNHEALTHY = 1
COLUMNS = 80
LABEL = 14
"""The width of the labels before the lines of a section."""
MAX_CLOSED = 5
"""How many hosts that are disabled or drained have a line."""
MAX_SCHEDULERS = 5
"""How many schedulers have a line."""


def status(as_json: AsJson = False, where: Where = ANYWHERE) -> int:
    """Show what runs, what is wrong or stuck, and what to do about it.

    The exit code is 1 if anything is wrong.
    """
    report = with_fleet(where, lambda s: s.status(), read_only=True)
    if as_json:
        from redsched.model.record import json_of

        tables.show_json(json_of(report))
    else:
        print("\n".join(_screen(report)))
    return 0 if report.healthy else UNHEALTHY


def _screen(report: StatusReport) -> Iterator[str]:
    yield _headline(report)
    for problem in report.problems:
        yield ""
        yield from _problem(problem)
    for cell in report.cells:
        yield ""
        yield from _cell(cell)
    for server in report.servers:
        yield ""
        yield from _server(server, report.durability)


def _headline(report: StatusReport) -> str:
    hosts, claims = sum(one.hosts.up for one in report.cells), sum(sum(one.claims.values()) for one in report.cells)
    if report.healthy:
        return f"healthy: {counted(hosts, 'host')} up, {counted(claims, 'claim')}"
    return f"not healthy: {counted(len(report.problems), 'problem')}"


def _problem(problem: StatusProblem) -> Iterator[str]:
    where = f"cell {problem.cell}: " if problem.cell else ""
    yield from _wrapped(f"! {where}{problem.detail}", "  ")
    if problem.advice:
        yield from _wrapped(f"  {problem.advice}:" if problem.commands else f"  {problem.advice}", "  ")
    yield from (f"    {command}" for command in problem.commands)


def _cell(cell: CellStatus) -> Iterator[str]:
    yield f"cell {cell.name}"
    yield from _line("epoch", f"{cell.epoch} since {_began(cell)}, {_settled(cell)}")
    yield from _line("hosts", _hosts(cell))
    yield from _line("agents", _agents(cell.hosts))
    yield from _closed(cell)
    counts = (f"{'at least ' * (name in cell.at_least)}{number} {name}" for name, number in cell.claims.items())
    yield from _line("claims", ", ".join(counts))
    yield from _schedulers(cell)
    yield from _line("audit", _audit(cell))


def _began(cell: CellStatus) -> str:
    at = formats.time(cell.epoch_began_ms)[: len("2026-01-02T03:04:05")]
    return f"{at}Z ({duration(cell.now_ms - cell.epoch_began_ms)})"


def _settled(cell: CellStatus) -> str:
    if cell.settle_at_ms is None:
        return "settled"
    who = "its hosts" if cell.unattested < 0 else counted(cell.unattested, "host")
    return f"waits for {who} until {formats.time(cell.settle_at_ms)}"


def _hosts(cell: CellStatus) -> str:
    found = cell.hosts
    health = {"up": found.up, "down": found.down, "written off": found.written_off}
    closed = {"disabled": found.disabled, "draining": found.draining, "not attested": found.unattested}
    parts = [f"{found.total}: {_amounts(health) or '0 up'}"]
    if any(closed.values()):
        parts.append(f"of them {_amounts(closed)}")
    return "; ".join(parts)


def _closed(cell: CellStatus) -> Iterator[str]:
    for one in cell.closed[:MAX_CLOSED]:
        reason = f" ({one.reason})" if one.reason else ""
        yield from _line(one.status, f"{one.name}{reason}: {_left_on(one)}")
    total = max(cell.hosts.disabled + cell.hosts.draining, len(cell.closed))
    if (more := total - len(cell.closed[:MAX_CLOSED])) > 0 and cell.closed:
        yield from _line("", f"and {more} more: `redsched host list --status disabled --status draining`")


def _left_on(one: ClosedHost) -> str:
    if not one.claims:
        return "no claims are left"
    claims, verb = counted(one.claims, "claim"), "is" if one.claims == 1 else "are"
    if one.moves:
        return f"{claims} {verb} being moved, see `redsched host show {one.name}`"
    return f"{claims} stay{'s' * (one.claims == 1)} until {'it ends' if one.claims == 1 else 'they end'}"


def _amounts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in numbers.items() if number)


def _agents(hosts: HostCounts) -> str:
    if not hosts.with_agent:
        return "none"
    releases = (f"{number} of {version or 'an unknown release'}" for version, number in hosts.agent_versions.items())
    oldest = f"; the oldest report of those up: {hosts.slowest}, {duration(hosts.slowest_ms)} ago"
    return ", ".join(releases) + (oldest if hosts.up else "")


def _schedulers(cell: CellStatus) -> Iterator[str]:
    label = "schedulers"
    for one in cell.schedulers[:MAX_SCHEDULERS]:
        yield from _line(label, f"{one.version} on {one.node}, process {one.pid}, {duration(one.lag_ms)} behind")
        label = ""
    if (more := len(cell.schedulers) - MAX_SCHEDULERS) > 0:
        versions = ", ".join(sorted({one.version for one in cell.schedulers}))
        yield from _line("", f"and {more} more; releases: {versions}")
    if not cell.schedulers:
        yield from _line(label, "none has announced itself")


def _audit(cell: CellStatus) -> str:
    found = cell.audit
    if found is None:
        return "none yet"
    ago = duration(cell.now_ms - found.at_ms)
    return (
        f"{ago} ago: {counted(found.hosts, 'host')}, {counted(found.claims, 'claim')}; "
        f"{counted(found.repaired, 'problem')} repaired, {found.broken} left"
    )


def _server(server: ServerStatus, durability: str) -> Iterator[str]:
    yield f"store {server.name}".rstrip()
    role = f"replica of {server.primary}" if server.primary else f"primary with {counted(server.replicas, 'replica')}"
    yield from _line("server", f"{server.version}, {role}")
    limit = f"of {mib(server.max_memory_bytes)}" if server.max_memory_bytes else "without a limit"
    yield from _line("memory", f"{mib(server.memory_bytes)} {limit}, {server.memory_policy}")
    file = "append-only file" if server.append_only else "no append-only file"
    yield from _line("disk", f"{file}, the last write {'succeeded' if server.saved else 'failed'}")
    yield from _line("durability", f"{durability} (REDSCHED_DURABILITY of what answers)")


def _line(label: str, text: str) -> Iterator[str]:
    return _wrapped(f"  {label:<{LABEL - 2}}{text}", " " * LABEL)


def _wrapped(text: str, indent: str) -> Iterator[str]:
    """Return the lines of a text in 80 columns. A name that is longer than a line is not cut."""
    wrapper = textwrap.TextWrapper(COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return iter(wrapper.wrap(text))
