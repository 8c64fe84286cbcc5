"""`redsched top`."""

import os
import sys
from typing import Annotated

from redsched.cli.fleet import ANYWHERE, Where, opened, settings_of
from redsched.cli.options import seconds
from redsched.cli.running import run_until_ended
from redsched.errors import InvalidRequest
from redsched.settings import Settings

MAX_INTERVAL_S = 3600

Interval = Annotated[int, seconds("--interval", least=1, most=MAX_INTERVAL_S, help="Time between reads, such as 2.")]


def top(interval_s: Interval = 2, where: Where = ANYWHERE) -> None:
    """Watch the fleet in the terminal: problems, capacity, hosts and the latest events.

    Keys: arrows, Enter for a host, s to sort, / to filter, ? for help, q to quit.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise InvalidRequest(
            "`redsched top` draws on a terminal, and this is none: use `redsched status` or `redsched host list`"
        )
    run_until_ended(_run(settings_of(where), interval_s))


async def _run(settings: Settings, interval_s: float) -> None:
    async with opened(settings, read_only=True) as fleet:
        from redsched.cli.top.app import TopApp  # takes long to load
        from redsched.cli.top.reading import read_state

        await read_state(fleet)  # raises what is wrong before the screen is taken
        app = TopApp(fleet, _name(settings), interval_s)
        await app.run_async()
        if app.failed is not None:
            raise app.failed


def _name(settings: Settings) -> str:
    """Return how the fleet is reached, without a password."""
    if settings.api:
        return f"API {settings.api}"
    from redsched.store.topology.url import without_password

    return f"store {without_password(settings.redis_url)}"
