"""`--watch`: print a list again and again, until Ctrl-C."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from redsched.cli.fleet import Fleet, Where, opened, settings_of, with_fleet
from redsched.cli.running import run_until_ended
from redsched.errors import SchemaMismatch, Unavailable
from redsched.settings import Settings

Found = TypeVar("Found")

EVERY_S = 2.0
CLEAR = "\x1b[H\x1b[2J"
"""Makes a terminal empty, and moves the cursor to its first line."""

WatchOption = Annotated[bool, typer.Option("--watch", help="Print the list every 2 seconds, until Ctrl-C.")]


def find_and_show(
    where: Where, watch: bool, find: Callable[[Fleet], Awaitable[Found]], show: Callable[[Found], None]
) -> None:
    """Read from the fleet and print what was found: once, or with `watch` until the command is ended.

    A fleet that was read once and then cannot be reached is tried again, with the reason on stderr.
    """
    if not watch:
        return show(with_fleet(where, find, read_only=True))
    return run_until_ended(_watch(settings_of(where), find, show))


async def _watch(settings: Settings, find: Callable[[Fleet], Awaitable[Found]], show: Callable[[Found], None]) -> None:
    clear = CLEAR if sys.stdout.isatty() and os.environ.get("TERM") != "dumb" else ""
    async with opened(settings, read_only=True) as fleet:
        found, said = await find(fleet), ""
        while True:
            if not said:
                print(clear, end="")
                show(found)
                print("" if clear else "\n", end="", flush=True)
            await asyncio.sleep(EVERY_S)
            try:
                found, said = await find(fleet), ""
            except SchemaMismatch:
                raise  # another release of redsched is needed
            except Unavailable as error:
                if str(error) != said:
                    said = str(error)
                    print(f"redsched: trying again: {said}", file=sys.stderr)
