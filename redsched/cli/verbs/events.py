"""`redsched events`: show or follow the log of claims, moves, releases and operator actions."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer

from redsched.cli import completion
from redsched.cli.fleet import ANYWHERE, Fleet, Where, opened, settings_of, with_fleet
from redsched.cli.options import MAX_AGE_S, After, Limit, Many, event_times, filter_names, many, seconds, takes
from redsched.cli.output import formats, tables
from redsched.cli.output.listings import Column, Form, Listing, Output, show_page
from redsched.cli.running import run_until_ended
from redsched.model.filters import EventFilter
from redsched.model.records.events import Event
from redsched.model.records.pages import EVENTS, Page
from redsched.wording import counted

EVERY_S = 0.5
SHOWN = ("claim", "host", "project", "consumer")
REASON = "reason"
NOT_SHOWN = ("actor", "request_id")
"""Facts that only JSON has: they would make every line long."""

Before = Annotated[int, seconds("--older-than", most=MAX_AGE_S, help="Only events longer ago, such as 10m.")]
Since = Annotated[int, seconds("--newer-than", most=MAX_AGE_S, help="Only events since, such as 1h.")]
FollowOption = Annotated[bool, typer.Option("--follow", help="Show new events as they arrive, until Ctrl-C.")]
WideOption = Annotated[
    bool, typer.Option("--wide", help="One line for each event, whatever the width of the terminal: -o wide.")
]


@takes(Form, "form")
def events(
    form: Form,
    claim: Annotated[Many, many("Only events of this claim.", completed=completion.claims)] = [],  # noqa: B006 - typer reads it
    project: Annotated[Many, many("Only events of this project.")] = [],  # noqa: B006
    host: Annotated[Many, many("Only events of this host.", completed=completion.hosts)] = [],  # noqa: B006
    kind: Annotated[Many, many("Only events of this kind, such as claimed.")] = [],  # noqa: B006
    actor: Annotated[Many, many("Only events that this actor caused.")] = [],  # noqa: B006
    request_id: Annotated[Many, many("Only events of this request.")] = [],  # noqa: B006
    older_than: Before = 0,
    newer_than: Since = 0,
    follow: FollowOption = False,
    limit: Limit = 100,
    after: After = "",
    wide: WideOption = False,
    where: Where = ANYWHERE,
) -> None:
    """Show the latest events, or those after a given one.

    --follow shows events as they arrive; with --json, one per line.
    """
    given = (("claim", claim), ("project", project), ("host", host), ("kind", kind))
    names: dict[str, Any] = {what: filter_names(what, value) for what, value in given}
    names |= event_times(older_than, newer_than)
    wanted = EventFilter(**names, actor=actor, request_id=request_id)
    wanted_form = replace(form, output=Output.WIDE) if wide and form.chosen is None else form
    if follow:
        return run_until_ended(_follow(where, after, wanted, _Follower(wanted_form)))
    page = with_fleet(where, lambda s: _page(s, limit, after, wanted), read_only=True)
    if not after and len(page.items) == limit and wanted_form.chosen in (None, Output.WIDE):
        tables.remark(f"the latest {counted(limit, 'event')}: --limit shows more, --older-than earlier ones")
    return show_page(LISTING, page, EVENTS.values, wanted_form)


async def _page(fleet: Fleet, limit: int, after: str, wanted: EventFilter) -> Page[Event]:
    if after:
        return await fleet.events.list(limit, after, wanted)
    return Page(await fleet.events.newest(limit, wanted))


async def _follow(where: Where, after: str, wanted: EventFilter, follower: "_Follower") -> None:
    async with opened(settings_of(where), read_only=True) as fleet:
        async for one in fleet.events.follow(EVERY_S, after, wanted):
            follower.show(one)


class _Follower:
    """Shows events as they arrive: in the form of `-o`, as plain lines, or fitted to a terminal and grouped by day."""

    def __init__(self, form: Form) -> None:
        self._form = form.chosen
        self._is_fitted = tables.is_fitted(self._form is Output.WIDE)
        self._day = ""

    def show(self, one: Event) -> None:
        """Show one event immediately."""
        if self._form is Output.JSON:
            print(json.dumps(one.members()), flush=True)
        elif self._form is Output.YAML:
            print("---")
            tables.show_yaml(one.members())
        elif self._form is Output.NAME:
            print(one.id, flush=True)
        elif self._is_fitted:
            self._show_fitted(one)
        else:
            print(tables.line_of((*_row(one)[:-1], " ".join(filter(None, (_what(one), _note(one)))))), flush=True)

    def _show_fitted(self, one: Event) -> None:
        at = formats.At(one.at_ms)
        if at.day != self._day:
            self._day = at.day
            print(self._day)
        tables.say("  ".join(filter(None, (at.clock, one.kind, *_who(one), _what(one)))))
        if note := _note(one):
            tables.say(f"{' ' * formats.INDENT}{note}")


def _row(one: Event) -> tuple[object, ...]:
    return tuple(column.value(one) for column in LISTING.columns)


def _who(one: Event) -> Iterator[str]:
    """Yield the values of the table's columns: claim and host bare, the others as `name=value`."""
    for name in SHOWN:
        if value := one.facts.get(name):
            yield value if name in ("claim", "host") else f"{name}={value}"


def _what(one: Event) -> str:
    rest = (_fact(one, name) for name in one.facts if name not in (*SHOWN, REASON, *NOT_SHOWN))
    return " ".join((tables.amounts(one.slots), *rest)).strip()


def _note(one: Event) -> str:
    return _fact(one, REASON) if REASON in one.facts else ""


def _fact(one: Event, name: str) -> str:
    return f"{name}={' '.join(one.facts[name].split())}"


def _kind(one: Event) -> object:
    return formats.bad(one.kind) if "failed" in one.kind else one.kind


def _of(name: str) -> Callable[[Event], object]:
    return lambda one: one.facts.get(name)


LISTING: Listing[Event] = Listing(
    (
        Column("TIME", lambda one: formats.At(one.at_ms)),
        Column("KIND", _kind),
        Column("CLAIM", _of("claim")),
        Column("HOST", _of("host")),
        Column("PROJECT", _of("project"), leave=2),
        Column("CONSUMER", _of("consumer"), leave=1),
        Column("WHAT", _what),
    ),
    name=lambda one: one.id,
    empty="no events",
    note=_note,
)
