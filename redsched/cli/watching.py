"""`--watch`: print a list again and again, until Ctrl-C."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from redsched.cli.context import checked_url, first_reply_s, settings_for
from redsched.cli.scheduler import with_scheduler
from redsched.cli.shutdown import run_until_ended
from redsched.scheduler import Scheduler
from redsched.settings import Settings

Found = TypeVar("Found")

EVERY_S = 2.0
CLEAR = "\x1b[H\x1b[2J"
"""Makes a terminal empty, and moves the cursor to its first line."""

WatchOption = Annotated[bool, typer.Option("--watch", help="Print the list every 2 seconds, until Ctrl-C.")]


def find_and_show(
    url: str, watch: bool, find: Callable[[Scheduler], Awaitable[Found]], show: Callable[[Found], None]
) -> None:
    """Read from the store and print what was found: once, or with `watch` until the command is ended."""
    if not watch:
        return show(with_scheduler(url, find, read_only=True))
    settings = settings_for(url)
    return run_until_ended(_watch(checked_url(settings), settings, find, show))


async def _watch(
    url: str, settings: Settings, find: Callable[[Scheduler], Awaitable[Found]], show: Callable[[Found], None]
) -> None:
    clear = CLEAR if sys.stdout.isatty() and os.environ.get("TERM") != "dumb" else ""
    async with Scheduler.connect(url, settings, read_only=True, first_reply_s=first_reply_s(settings)) as scheduler:
        while True:
            found = await find(scheduler)
            print(clear, end="")
            show(found)
            print("" if clear else "\n", end="", flush=True)
            await asyncio.sleep(EVERY_S)
