"""`redsched aggregate`, `server-group`, `shared-pool`: each with `list`, `show`, `set` and `delete`.

`set` creates or changes an object. Fields that are not named stay as they are, unless `--request` replaces all of them.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Protocol, TypeVar

import typer

from redsched.cli import completion, options
from redsched.cli.fleet import ANYWHERE, Fleet, Where, with_fleet
from redsched.cli.options import After, AsJson, Limit, RequestFile, about
from redsched.cli.output import formats, tables
from redsched.cli.output.formats import in_names, natural
from redsched.cli.output.listings import Column, Form, Listing, NoHeaders, OutputOption, in_order, show_page
from redsched.cli.verbs.hosts import SLOT_HEADS, slot_row
from redsched.cli.watching import WatchOption, find_and_show
from redsched.errors import NotFound, PreconditionFailed
from redsched.model import Aggregate, GroupPolicy, ServerGroup
from redsched.model.conditions import ABSENT, IfMatch
from redsched.model.record import json_of
from redsched.model.records import pages
from redsched.model.records.declared import AggregateView, ServerGroupView, SharedPoolView
from redsched.model.records.pages import Page, PageOf
from redsched.model.validation import check_name
from redsched.requests import declared
from redsched.requests.declared import SharedPoolBody
from redsched.requests.parsing import merged
from redsched.wording import counted

View = TypeVar("View")

MAX_TRIES = 10
"""How often an object is read and edited again if others change it at the same time."""
Edit = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Returns the changes to a body."""
Put = Callable[[Fleet, str, dict[str, Any], IfMatch], Awaitable[tuple[View, bool]]]
"""Declares an object with this name and body, on this condition; returns it, and whether it is new."""
REPLACES = "Repeatable; replaces the current list."

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", callback=lambda name: check_name("name", name), autocompletion=completion.declared),
]
Force = Annotated[bool, typer.Option("--force", help="Delete it even if it is in use.")]


class _Service(Protocol[View]):
    """The calls that objects of every kind have."""

    def tag(self, name: str, /) -> Coroutine[Any, Any, str]: ...
    def get(self, name: str, /) -> Coroutine[Any, Any, View]: ...
    def list(self, limit: int = 100, after: str = "") -> Awaitable[Page[View]]: ...
    def delete(self, name: str, force: bool = False) -> Coroutine[Any, Any, None]: ...


@dataclass(frozen=True, slots=True)
class _Kind(Generic[View]):
    """How the objects of one kind are named, accessed and shown."""

    word: str
    service: Callable[[Fleet], _Service[View]]
    page: PageOf[View]
    listing: Listing[View]
    show: Callable[[View], None]
    body: Callable[[View], dict[str, Any]]
    put: Put[View]

    def set(self, name: str, file: str, edit: Edit, as_json: bool, where: Where) -> View:
        """Change an object as `change` does, show it, and return it."""
        found, new = with_fleet(where, lambda fleet: self.change(fleet, name, file, edit), on_demand=True)
        if as_json:
            tables.show_json(json_of(found))
        else:
            print(f"{self.word} {name} is {'declared' if new else 'changed'}")
        return found

    async def change(self, fleet: Fleet, name: str, file: str, edit: Edit) -> tuple[View, bool]:
        """Put the file's body or that of the current object, with what `edit` returns for it merged in.

        If somebody else changes the object between the read and the write, it is read and edited again.
        """
        tries = MAX_TRIES
        while True:
            base, tags = (options.file_body(file), None) if file else await self._current(fleet, name)
            try:
                return await self.put(fleet, name, dict(merged(base, edit(base))), tags)
            except PreconditionFailed:
                tries -= 1
                if not tries:
                    raise

    async def _current(self, fleet: Fleet, name: str) -> tuple[dict[str, Any], IfMatch]:
        """Return the body of an object and its tag; if there is none, an empty body and that there must be none."""
        service = self.service(fleet)
        try:
            tag = await service.tag(name)  # a tag newer than the body would match
            return self.body(await service.get(name)), (tag,)
        except NotFound:
            return {}, ABSENT

    def list_all(
        self,
        output: OutputOption = None,
        no_headers: NoHeaders = False,
        as_json: AsJson = False,
        watch: WatchOption = False,
        limit: Limit = 100,
        after: After = "",
        where: Where = ANYWHERE,
    ) -> None:
        """List them."""
        form = Form(output, no_headers, as_json)

        async def find(fleet: Fleet) -> Page[View]:
            return await self.service(fleet).list(limit=limit, after=after)

        def show_found(page: Page[View]) -> None:
            show_page(self.listing, in_order(page, lambda one: natural(self.listing.name(one))), self.page.values, form)

        find_and_show(where, watch, find, show_found)

    def show_one(self, name: Name, as_json: AsJson = False, where: Where = ANYWHERE) -> None:
        """Show one."""
        found: View = with_fleet(where, lambda s: self.service(s).get(name), read_only=True)
        return tables.show_json(json_of(found)) if as_json else self.show(found)

    def delete(self, name: Name, force: Force = False, where: Where = ANYWHERE) -> None:
        """Delete one. Refused while it is in use, unless forced."""
        with options.names_force(f"redsched {self.word.replace(' ', '-')} delete {name} --force"):
            with_fleet(where, lambda s: self.service(s).delete(name, force), on_demand=True)
        print(f"{self.word} {name} is deleted")


def set_aggregate(
    name: Name,
    metadata: Annotated[
        list[str],
        typer.Option("--metadata", metavar="KEY=VALUE", help="Set a key; without VALUE, remove it. Repeatable."),
    ] = [],  # noqa: B006 - typer reads it, nobody writes it; so for all lists below
    host: Annotated[
        list[str], typer.Option("--host", help="Add this host. Repeatable.", autocompletion=completion.hosts)
    ] = [],  # noqa: B006
    not_host: Annotated[
        list[str], typer.Option("--not-host", help="Remove this host. Repeatable.", autocompletion=completion.hosts)
    ] = [],  # noqa: B006
    request: RequestFile = "",
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Create an aggregate, or change its metadata and hosts."""
    said = {key: value or None for key, value in options.pairs("--metadata", metadata).items()}

    def edit(base: dict[str, Any]) -> Mapping[str, Any]:
        hosts = {*base.get("hosts", ()), *host}.difference(not_host)
        return {"metadata": said, "hosts": sorted(hosts)}

    AGGREGATES.set(name, request, edit, as_json, where)


def set_server_group(
    name: Name,
    policy: Annotated[GroupPolicy | None, typer.Option(help="How members are placed relative to each other.")] = None,
    by: Annotated[str, typer.Option(help=about(ServerGroup, "by"), show_default=False)] = "",
    max_per_host: Annotated[
        int | None, typer.Option(help=about(ServerGroup, "max_per_host"), show_default=False)
    ] = None,
    count_by: Annotated[
        list[str], typer.Option("--count-by", metavar="label:KEY", help=f"{about(ServerGroup, 'count_by')} {REPLACES}")
    ] = [],  # noqa: B006
    request: RequestFile = "",
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Create or change a server group. While it has members, only --max-per-host can change."""
    given = {"policy": policy, "by": by, "max_per_host": max_per_host, "count_by": count_by}
    said = {key: value for key, value in given.items() if value}
    SERVER_GROUPS.set(name, request, lambda _: said, as_json, where)


def set_shared_pool(
    name: Name,
    total: Annotated[
        list[str],
        typer.Argument(
            metavar="[CLASS=TOTAL...]", help="Totals by class, such as CUSTOM_SEAT=100.", show_default=False
        ),
    ] = [],  # noqa: B006
    trait: Annotated[list[str], typer.Option("--trait", help=f"Trait of the pool. {REPLACES}")] = [],  # noqa: B006
    aggregate: Annotated[
        list[str],
        typer.Option(
            "--aggregate",
            help=f"{about(SharedPoolBody, 'aggregates')} {REPLACES}",
            autocompletion=completion.aggregates,
        ),
    ] = [],  # noqa: B006
    cell: Annotated[str, typer.Option(help=about(SharedPoolBody, "cell"), show_default=False)] = "",
    request: RequestFile = "",
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Create a shared pool, or change its inventory. Claimed amounts do not change."""
    totals = {one: {"total": amount} for one, amount in options.amounts(total).items()}
    given = {"inventories": totals, "traits": trait, "aggregates": aggregate, "cell": cell}
    said = {key: value for key, value in given.items() if value}
    found = SHARED_POOLS.set(name, request, lambda _: said, as_json, where)
    for one in () if as_json else found.warnings:
        tables.say(f"warning: nothing can ever be claimed of {one}")


def _show_aggregate(found: AggregateView) -> None:
    print(f"{found.name}  {counted(len(found.hosts), 'host')}")
    print("metadata:", _words(found.metadata))
    print("hosts:", " ".join(sorted(found.hosts, key=natural)) or formats.NOTHING)


def _show_server_group(found: ServerGroupView) -> None:
    group = found.group
    print(
        f"{group.name}  {group.policy} by {group.by}, at most {group.max_per_host}  {counted(found.members, 'member')}"
    )
    if how := group.breach(found.members, found.counts.get(group.by, {})):
        print(formats.bad(f"its rule is broken, unless claims are moving: {how}"))
    rows = ((by, where, count) for by, counted in found.counts.items() for where, count in in_names(counted))
    tables.show_table(("BY", "WHERE", "MEMBERS"), rows, "no members")


def _show_pool(found: SharedPoolView) -> None:
    print(f"{found.name}  cell {found.cell}  for {' '.join(sorted(found.aggregates)) or 'all hosts'}")
    tables.show_table(SLOT_HEADS, (slot_row(slot, one) for slot, one in in_names(found.slots)), "no slots")
    print("traits:", " ".join(sorted(found.traits)) or formats.NOTHING)


async def _put_pool(fleet: Fleet, name: str, body: dict[str, Any], tags: IfMatch) -> tuple[SharedPoolView, bool]:
    pool = options.as_model(body, SharedPoolBody, name)
    return await fleet.shared_pools.put(pool, pool.cell, tags)


def _free(found: SharedPoolView) -> object:
    free = tables.amounts({slot: one.free for slot, one in found.slots.items()})
    return formats.bad(free) if any(one.free < 0 for one in found.slots.values()) else free


def _words(found: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(found.items())) or formats.NOTHING


AGGREGATES: _Kind[AggregateView] = _Kind(
    "aggregate",
    lambda fleet: fleet.aggregates,
    pages.AGGREGATES,
    Listing(
        (
            Column("AGGREGATE", lambda one: one.name),
            Column("HOSTS", lambda one: len(one.hosts), leave=2),
            Column("METADATA", lambda one: _words(one.metadata), leave=1),
        ),
        name=lambda one: one.name,
        empty="no aggregates",
    ),
    _show_aggregate,
    declared.aggregate_of,
    lambda fleet, name, body, tags: fleet.aggregates.put(options.as_model(body, Aggregate, name), tags),
)
SERVER_GROUPS: _Kind[ServerGroupView] = _Kind(
    "server group",
    lambda fleet: fleet.server_groups,
    pages.SERVER_GROUPS,
    Listing(
        (
            Column("SERVER GROUP", lambda one: one.group.name),
            Column("POLICY", lambda one: one.group.policy, leave=4),
            Column("BY", lambda one: one.group.by, leave=2),
            Column("AT MOST", lambda one: one.group.max_per_host, leave=1),
            Column("MEMBERS", lambda one: one.members, leave=3),
        ),
        name=lambda one: one.group.name,
        empty="no server groups",
    ),
    _show_server_group,
    declared.server_group_of,
    lambda fleet, name, body, tags: fleet.server_groups.put(options.as_model(body, ServerGroup, name), tags),
)
SHARED_POOLS: _Kind[SharedPoolView] = _Kind(
    "shared pool",
    lambda fleet: fleet.shared_pools,
    pages.SHARED_POOLS,
    Listing(
        (
            Column("SHARED POOL", lambda one: one.name),
            Column("CELL", lambda one: one.cell, leave=1),
            Column("FREE", _free, leave=3),
            Column("AGGREGATES", lambda one: " ".join(sorted(one.aggregates)), leave=2),
        ),
        name=lambda one: one.name,
        empty="no shared pools",
    ),
    _show_pool,
    declared.shared_pool_of,
    _put_pool,
)
