"""Lists of objects: their columns, the order in which a terminal leaves columns out, and the forms of `-o`."""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import typer

from redsched.cli.options import AsJson
from redsched.cli.output import tables
from redsched.cli.output.formats import TableStyle
from redsched.errors import InvalidRequest

if TYPE_CHECKING:
    from redsched.model.records.pages import Page

Item = TypeVar("Item")

MAX_PAGE = 1000
"""The largest page, which `--sort` reads."""


class Output(StrEnum):
    """The forms in which a list is printed, besides the usual table."""

    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OutputOption = Annotated[
    Output | None,
    typer.Option(
        "--output", "-o", help="Print all columns, JSON, YAML, or one name or id on each line.", show_default=False
    ),
]
SortOption = Annotated[
    str,
    typer.Option(
        "--sort", metavar="COLUMN", help="Sort all items by this column; COLUMN:desc reverses.", show_default=False
    ),
]
NoHeaders = Annotated[bool, typer.Option("--no-headers", help="Print no names of columns, and nothing for no rows.")]


@dataclass(frozen=True, slots=True)
class Form:
    """How a list is printed: `--json` is the same as `-o json`."""

    output: OutputOption = None
    no_headers: NoHeaders = False
    as_json: AsJson = False

    @property
    def chosen(self) -> Output | None:
        """The form; None for the usual table. Raises InvalidRequest if two are given."""
        if self.as_json and self.output not in (None, Output.JSON):
            raise InvalidRequest(f"--json and -o {self.output} are two forms of output: give one of them")
        return Output.JSON if self.as_json else self.output


@dataclass(frozen=True, slots=True)
class Column(Generic[Item]):
    """A column: its head, the value of an item in it, and `leave`, the order in which columns without room go.

    Those with 1 are left out first; one with 0 is never left out, because it identifies the item. A column that is
    `only_wide` is shown by `-o wide`; one that is `only_fitted`, such as an age, only by a table that fits a terminal:
    the others have the time itself.
    """

    head: str
    value: Callable[[Item], object]
    leave: int = 0
    only_wide: bool = False
    only_fitted: bool = False

    def is_shown(self, wide: bool) -> bool:
        """Return whether the column is in the table, if it has room."""
        return (wide or not self.only_wide) and (tables.is_fitted(wide) or not self.only_fitted)


@dataclass(frozen=True, slots=True)
class Listing(Generic[Item]):
    """How items of one kind are listed: `name` is the name or id that `-o name` prints."""

    columns: Sequence[Column[Item]]
    name: Callable[[Item], str]
    empty: str
    note: Callable[[Item], str] | None = None

    def show(
        self,
        items: Sequence[Item],
        content: Callable[[], Mapping[str, Any]],
        form: Form,
        after: str | None = None,
        empty: str = "",
    ) -> None:
        """Print items in a form. `content` returns the JSON; `after` is the cursor of the next page, if there is one.

        Raises InvalidRequest if two forms are given.
        """
        match form.chosen:
            case Output.JSON:
                return tables.show_json(content())
            case Output.YAML:
                return tables.show_yaml(content())
            case Output.NAME:
                print("".join(f"{name}\n" for name in dict.fromkeys(map(self.name, items))), end="")
                return _show_more_apart(after)
            case chosen:
                self._show_table(items, TableStyle(chosen is Output.WIDE, not form.no_headers), empty or self.empty)
                return _show_more_apart(after) if form.no_headers else tables.show_more(after)

    def show_rows(self, items: Sequence[Item]) -> None:
        """Print items as a table without options, such as that of `show`: no column is left out."""
        columns = [one for one in self.columns if one.is_shown(wide=False)]
        heads = [one.head for one in columns]
        tables.show_table(heads, [[one.value(item) for one in columns] for item in items], self.empty)

    def _show_table(self, items: Sequence[Item], layout: TableStyle, empty: str) -> None:
        columns = [one for one in self.columns if one.is_shown(layout.wide)]
        tables.show_table(
            [one.head for one in columns],
            [[one.value(item) for one in columns] for item in items],
            empty,
            None if self.note is None else map(self.note, items),
            TableStyle(layout.wide, layout.heads, [one.leave for one in columns]),
        )


def show_page(
    listing: Listing[Item],
    page: "Page[Item]",
    content: "Callable[[Page[Item]], Mapping[str, Any]]",
    form: Form,
    empty: str = "",
) -> None:
    """Print a page of items in a form. Raises InvalidRequest if two forms are given.

    `content` should look up the response only when it is called, since that loads much that tables do not need.
    """
    listing.show(page.items, lambda: content(page), form, page.next, empty)


def sort_key(orders: Mapping[str, Callable[[Item], Any]], sort: str) -> tuple[Callable[[Item], Any], bool]:
    """Return the key of `--sort NAME` or `NAME:desc`, and whether the order is descending. Raises InvalidRequest."""
    name, _, direction = sort.partition(":")
    if name not in orders or direction not in ("", "asc", "desc"):
        raise InvalidRequest(f"--sort {sort[:80]!r} is unknown: use {', '.join(orders)}, each with :desc to reverse it")
    return orders[name], direction == "desc"


async def sorted_page(
    fetch: "Callable[[int, str], Awaitable[Page[Item]]]",
    orders: Mapping[str, Callable[[Item], Any]],
    sort: str,
    limit: int,
    after: str,
    usual: Callable[[Item], Any],
) -> "Page[Item]":
    """Return the page after a cursor or, with `--sort`, the first `limit` of all items in that order.

    `fetch` returns the page with a limit and after a cursor. `usual` is the sort key within a page, and of items that
    are equal by `--sort`. Raises InvalidRequest.
    """
    from redsched.model.records.pages import Page  # which commands without a store need not load

    if not sort:
        return in_order(await fetch(limit, after), usual)
    if after:
        raise InvalidRequest("--sort sorts all items, and --after reads them in their own order: give one of them")
    key, descending = sort_key(orders, sort)
    found, cursor = list[Item](), ""
    while True:
        page = await fetch(MAX_PAGE, cursor)
        found += page.items
        if page.next is None:
            break
        cursor = page.next
    if len(found) > limit:
        print(f"the first {limit} of {len(found)}: --limit shows more", file=sys.stderr)
    return Page(tuple(sorted(sorted(found, key=usual), key=key, reverse=descending)[:limit]))


def in_order(page: "Page[Item]", key: Callable[[Item], Any]) -> "Page[Item]":
    """Return a page with its items in this order. Pages follow each other in the order of the store."""
    return replace(page, items=tuple(sorted(page.items, key=key)))


def _show_more_apart(after: str | None) -> None:
    """Print how to get the next page to stderr, as stdout has only rows."""
    if after:
        print(f"there are more: --after {after}", file=sys.stderr)
