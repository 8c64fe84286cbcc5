"""`redsched init` and `upgrade`: commands for the store as a whole."""

from redsched.cli.context import declare
from redsched.cli.context import upgrade as upgrade_cells
from redsched.cli.options import Url
from redsched.cli.where import store_settings
from redsched.store.commands.schema import SCHEMA


def init(url: Url = "") -> None:
    """Declare the cells new, so that no scheduler waits for hosts that never existed.

    Cells that exist already are not changed.
    """
    settings = store_settings(url)
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
