"""`redsched events`: the log of who claimed, moved and released what; and following it."""

import json
from typing import Annotated

import typer
from pydantic_core import to_json

from redsched.cli import completion, tables
from redsched.cli.context import checked_url, settings_for, with_scheduler
from redsched.cli.options import After, AsJson, Limit, Many, Url, filter_names, many
from redsched.cli.shutdown import run_until_ended
from redsched.scheduler import EventFilter, EventView, Page, Scheduler
from redsched.schema import render

EVERY_S = 0.5
HEADS = ("TIME", "KIND", "CLAIM", "HOST", "PROJECT", "CONSUMER", "WHAT")
SHOWN = ("claim", "host", "project", "consumer")
REASON = "reason"

FollowOption = Annotated[bool, typer.Option("--follow", help="Go on with new ones until Ctrl-C.")]


def events(
    claim: Annotated[Many, many("Only of this claim.", completed=completion.claims)] = [],  # noqa: B006 - typer reads it
    project: Annotated[Many, many("Only of this project.")] = [],  # noqa: B006
    host: Annotated[Many, many("Only of this host.", completed=completion.hosts)] = [],  # noqa: B006
    kind: Annotated[Many, many("Only of this kind, such as claimed.")] = [],  # noqa: B006
    follow: FollowOption = False,
    limit: Limit = 100,
    after: After = "",
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Show the latest events, or those after one.

    With --follow they are shown as they come, with --json one a line.
    """
    given = (("claim", claim), ("project", project), ("host", host), ("kind", kind))
    wanted = EventFilter(**{what: filter_names(what, value) for what, value in given})
    if follow:
        return run_until_ended(_follow(url, after, wanted, as_json))
    page = with_scheduler(url, lambda s: _page(s, limit, after, wanted))
    if as_json:
        return tables.show_json({"events": [render.event(one) for one in page.items], "next": page.next})
    tables.show_table(HEADS, map(_row, page.items), "no events", map(_note, page.items))
    tables.show_more(page.next)
    return None


async def _page(scheduler: Scheduler, limit: int, after: str, wanted: EventFilter) -> Page[EventView]:
    if after:
        return await scheduler.events.list(limit, after, wanted)
    return Page(tuple(await scheduler.events.newest(limit, wanted)))


async def _follow(url: str, after: str, wanted: EventFilter, as_json: bool) -> None:
    settings = settings_for(url)
    async with Scheduler.connect(checked_url(settings), settings) as scheduler:
        async for one in scheduler.events.follow(EVERY_S, after, wanted):
            line = json.dumps(json.loads(to_json(render.event(one)))) if as_json else _line(one)
            print(line, flush=True)


def _row(one: EventView) -> tuple[object, ...]:
    rest = (_fact(one, name) for name in one.facts if name not in (*SHOWN, REASON))
    what = " ".join((tables.amounts(one.slots), *rest)).strip()
    return (tables.At(one.at_ms), one.kind, *(one.facts.get(name) for name in SHOWN), what)


def _note(one: EventView) -> str:
    return _fact(one, REASON) if REASON in one.facts else ""


def _fact(one: EventView, name: str) -> str:
    return f"{name}={' '.join(one.facts[name].split())}"


def _line(one: EventView) -> str:
    return " ".join((*map(tables.shown, _row(one)), _note(one))).strip()
