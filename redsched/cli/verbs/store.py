"""`redsched init` and `upgrade`: commands for the store as a whole."""

from redsched.cli.context import declare, settings_for
from redsched.cli.context import upgrade as upgrade_cells
from redsched.cli.options import Url
from redsched.store.commands.schema import SCHEMA


def init(url: Url = "") -> None:
    """Declare the cells new, so that nobody waits for hosts that never were.

    Cells that exist already are not changed.
    """
    settings = settings_for(url)
    new = declare(settings)
    for name in settings.cells:
        print(f"cell {name} is {'declared' if name in new else 'known already: nothing was changed'}")


def upgrade(url: Url = "") -> None:
    """Shut older releases, beside which this one cannot work, out of the cells.

    Stop their processes first.
    """
    settings = settings_for(url)
    upgrade_cells(settings)
    for name in settings.cells:
        print(f"cell {name} is of schema {SCHEMA.number}; releases older than schema {SCHEMA.beside} are refused")
