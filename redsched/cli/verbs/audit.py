"""`redsched audit`: check that the store is consistent, and repair it."""

from typing import Annotated

import typer

from redsched.cli.fleet import with_scheduler
from redsched.cli.options import AsJson, Url
from redsched.cli.output import progress, tables
from redsched.model.record import json_of
from redsched.model.records.audit import Problem
from redsched.wording import counted

BROKEN = 1
HEADS = ("INVARIANT", "WHAT", "WHERE", "FOUND", "SHOULD BE", "REPAIRED")


def audit(
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what can be repaired, and show what was repaired.")
    ] = False,
    as_json: AsJson = False,
    url: Url = "",
) -> int:
    """Check the store's sums, limits and leftovers while it is in use.

    The exit code is 1 if something is still broken.
    """
    with progress.shown("repairing" if repair else "auditing"):
        report = with_scheduler(url, lambda s: s.repair() if repair else s.audit(), read_only=not repair)
    if as_json:
        tables.show_json(json_of(report))
    else:
        print(f"audited {counted(report.hosts, 'host')} and {counted(report.claims, 'claim')}")
        tables.show_table(HEADS, map(_row, report.problems), "all is well")
        for rule in report.broken_rules:
            print(f"rule broken: {rule}")
        for advice in dict.fromkeys(one.advice for one in report.broken if one.advice):
            print(f"note: {advice}")
        if report.broken and not repair and any(one.repair for one in report.broken):
            print("`redsched audit --repair` repairs what it can")
    return BROKEN if report.broken else 0


def _row(one: Problem) -> tuple[object, ...]:
    return (one.invariant, one.what, one.thing, one.found, one.should, one.repaired)
