"""`redsched init`, `upgrade` and `audit`: words about the store as a whole."""

import typer

from redsched.cli import tables
from redsched.cli.options import AsJson, Url
from redsched.cli.with_store import declare, settings_for, with_scheduler
from redsched.cli.with_store import upgrade as upgrade_cells
from redsched.scheduler import AuditReport
from redsched.store.schema import SCHEMA

BROKEN = 1


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (init, upgrade, audit):
        app.command()(command)


def init(url: Url = "") -> None:
    """Declare the cells new, so that nobody waits for hosts that never were. Changes nothing where they are known."""
    settings = settings_for(url)
    new = declare(settings)
    for name in settings.cells:
        print(f"cell {name} is {'declared' if name in new else 'known already: nothing was changed'}")


def upgrade(url: Url = "") -> None:
    """Shut older releases, beside which this one cannot work, out of the cells. Stop their processes first."""
    settings = settings_for(url)
    upgrade_cells(settings)
    for name in settings.cells:
        print(f"cell {name} is of schema {SCHEMA.number}; releases older than schema {SCHEMA.beside} are refused")


def audit(as_json: AsJson = False, url: Url = "") -> int:
    """Check the store's sums and limits while it works. Exit code 1 and a table where one is broken."""
    found = with_scheduler(url, lambda s: s.audit())
    if as_json:
        tables.show_json(_json(found))
    else:
        print(f"audited {found.hosts} hosts and {found.claims} claims")
        rows = ((one.invariant, one.thing, one.detail) for one in found.problems)
        tables.show_table(("INVARIANT", "THING", "DETAIL"), rows, "all is well")
    return BROKEN if found.problems else 0


def _json(found: AuditReport) -> dict[str, object]:
    problems = [{"invariant": one.invariant, "thing": one.thing, "detail": one.detail} for one in found.problems]
    return {"hosts": found.hosts, "claims": found.claims, "problems": problems}
