"""Ask before what cannot be taken back: say what would happen, and go on only after a yes, or with `--yes`."""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from shutil import get_terminal_size
from typing import Annotated, Any, NamedTuple

import typer

from redsched.cli.fleet import Fleet, Where, with_fleet
from redsched.cli.output.formats import wrapped
from redsched.errors import InvalidRequest, NotFound
from redsched.model import Claim
from redsched.model.records.bulk import BulkPage, BulkResult
from redsched.model.records.pages import Page
from redsched.wording import counted, named

NOT_CONFIRMED = 130
"""The exit code if the answer is not yes: the same as that of Ctrl-C."""
MAX_COUNTED = 1000
"""The most claims that are read to count them."""

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def ask(yes: bool, consequence: Callable[[], str]) -> None:
    """Return if the user agrees, or has agreed with `--yes`. `consequence` returns what would happen; '' for nothing.

    Raises InvalidRequest if nobody can be asked, and typer.Exit if the answer is not yes.
    """
    if yes:
        return
    if not (text := consequence()):
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidRequest(f"{text}. Nobody can be asked here: add --yes to do it")
    print(wrapped(f"{text}.", get_terminal_size().columns), file=sys.stderr)
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        print("nothing is changed", file=sys.stderr)
        raise typer.Exit(NOT_CONFIRMED)


def claims_that(where: Where, dry_run: Callable[[Fleet], Awaitable[BulkPage]], what: str) -> str:
    """Return how many claims a verb would change, what happens to them, and which they are; '' if there are none."""

    async def selected(fleet: Fleet) -> Page[BulkResult]:
        page = await dry_run(fleet)
        return Page(page.results, page.next)

    found = _matching(where, selected)
    return f"{found.number} {what}: {found.summary}" if found else ""


def claims_on(where: Where, host: str, cell: str = "") -> str:
    """Return how many claims a host holds, and of which projects."""
    found = _matching(where, lambda fleet: fleet.claims.list(host=host, cell=cell or None, limit=MAX_COUNTED))
    return f"It holds {found.number}: {found.summary}" if found else "It holds no claims"


def claims_freed(where: Where, ids: Sequence[str]) -> str:
    """Return which of these claims would be freed though their work may run; '' if none of them has a host."""

    async def read(fleet: Fleet) -> list[Claim]:
        found = []
        for one in ids:
            with suppress(NotFound):
                found.append(await fleet.claims.get(one))
        return found

    held = [one for one in with_fleet(where, read, read_only=True) if one.placements]
    if not held:
        return ""
    named_here = named([f"{one.claim_id} ({one.state} on {one.host})" for one in held])
    return f"Freed at once, even if the work still runs, so that others may get the same amounts: {named_here}"


class _Matching(NamedTuple):
    number: str
    """Such as `2 claims`, or `at least 1000 claims`."""
    summary: str


def _matching(where: Where, read: Callable[[Fleet], Awaitable[Page[Any]]]) -> _Matching | None:
    """Return how many claims are read, and which; None if there are none."""
    page = with_fleet(where, read, read_only=True)
    if not page.items:
        return None
    return _Matching(f"{'at least ' if page.next else ''}{counted(len(page.items), 'claim')}", _summary(page.items))


def _summary(claims: Sequence[Claim | BulkResult]) -> str:
    """Return the first ids, and the numbers by project: `a, b and 7 more (5 of web, 4 without a project)`."""
    projects = Counter(one.project for one in claims)
    parts = [
        f"{number} of {name}" if name else f"{number} without a project" for name, number in projects.most_common(5)
    ]
    return f"{named([one.claim_id for one in claims])} ({', '.join(parts)})"
