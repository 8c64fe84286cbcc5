"""`redsched init` and `upgrade`: commands for the store as a whole."""

from typing import Annotated

import typer

from redsched.cli.context import declare, start_above
from redsched.cli.context import upgrade as upgrade_cells
from redsched.cli.options import Url
from redsched.cli.where import store_settings
from redsched.model.validation import check_name
from redsched.store.commands.schema import SCHEMA


def init(
    url: Url = "",
    above: Annotated[
        str,
        typer.Option(
            "--above",
            metavar="EPOCH",
            help="Start an epoch above this one in cells that exist, because the store's clock was wrong once.",
            show_default=False,
        ),
    ] = "",
    cell: Annotated[
        str, typer.Option("--cell", help="Only this cell. Default: all of REDSCHED_CELLS.", show_default=False)
    ] = "",
) -> None:
    """Declare the cells new, so that no scheduler waits for hosts that never existed.

    Cells that exist already are not changed, except by --above: then their hosts attest what they hold.
    """
    settings = store_settings(url)
    if cell:
        settings = settings.model_copy(update={"cells": (check_name("cell", cell),)})
    if above:
        for name, epoch in start_above(settings, above).items():
            print(f"cell {name} has epoch {epoch}, which is above {above}")
        return
    new = declare(settings)
    for name in settings.cells:
        print(f"cell {name} is {'declared' if name in new else 'not changed: it exists already'}")


def upgrade(url: Url = "") -> None:
    """Lock out of the cells older releases that cannot run beside this one.

    Stop their processes first.
    """
    settings = store_settings(url)
    upgrade_cells(settings)
    for name in settings.cells:
        print(f"cell {name} has schema {SCHEMA.number}; releases older than schema {SCHEMA.beside} are refused")
