"""Bulk calls of `redsched claim release`, `renew`, `shelve` and `unshelve`: filters, pages, and a table of results."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from redsched import progress
from redsched.cli import completion, confirmation, options
from redsched.cli.confirmation import Yes
from redsched.cli.fleet import Fleet, Where, with_fleet
from redsched.cli.options import Many, Mine, NewerThan, OlderThan, many
from redsched.cli.output import tables
from redsched.cli.output.progress import shown
from redsched.errors import ClaimState, InvalidRequest
from redsched.model import ListedState
from redsched.model.filters import ClaimFilter
from redsched.model.record import json_of
from redsched.model.records.bulk import BulkOutcome, BulkPage, BulkResult
from redsched.wording import counted

HEADS = ("CLAIM", "HOST", "STATE", "OUTCOME")
PAGE = 1000
BEING = {"released": "releasing", "renewed": "renewing", "shelved": "shelving", "unshelved": "unshelving"}
"""What a command does, by the participle for its summary."""


@dataclass(frozen=True)
class Filters:
    """The options of a command that filter claims, and `--dry-run`."""

    host: Annotated[Many, many("All claims on this host.", "--host", completed=completion.hosts)] = field(
        default_factory=list
    )
    project: Annotated[Many, many("All claims of this project.", "--project")] = field(default_factory=list)
    consumer: Annotated[Many, many("All claims for this consumer.", "--consumer")] = field(default_factory=list)
    state: Annotated[list[ListedState], many("All claims in this state.", "--state")] = field(default_factory=list)
    zone: Annotated[Many, many("All claims on hosts in this zone.", "--zone")] = field(default_factory=list)
    cell: Annotated[Many, many("All claims in this cell.", "--cell")] = field(default_factory=list)
    owner: Annotated[Many, many("All claims of this owner.", "--owner")] = field(default_factory=list)
    mine: Mine = False
    older_than: OlderThan = 0
    newer_than: NewerThan = 0
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With filters: list the selected claims and change nothing.")
    ] = False
    yes: Yes = False

    def wanted(self) -> ClaimFilter | None:
        """Return the filter; None if no filter option is given. Raises InvalidRequest."""
        names = ("host", "project", "consumer", "zone", "cell")
        given: dict[str, Any] = {name: options.filter_names(name, getattr(self, name)) for name in names}
        given |= options.ages(self.older_than, self.newer_than) | {"owner": options.owners(self.owner, self.mine)}
        return ClaimFilter(state=self.state, **given) if self.state or any(given.values()) else None

    def or_ids(self, ids: Sequence[str], token: str) -> ClaimFilter | None:
        """Return the filter; None if claims are named by ids. Raises InvalidRequest for both or neither of them."""
        wanted = self.wanted()
        if bool(ids) == (wanted is not None):
            raise InvalidRequest("give either claim ids or filters such as --project web")
        if wanted is not None and token:
            raise InvalidRequest("--token names a single placement: leave it out with filters")
        if wanted is None and self.dry_run:
            raise InvalidRequest("--dry-run requires filters such as --project web: leave it out for claim ids")
        return wanted


takes_filters = options.takes(Filters, "filters")
"""Decorator that gives a command every option of `Filters`, as its argument `filters`."""

ManyVerb = Callable[[Fleet, str, bool], Awaitable[BulkPage]]
"""A bulk call on the page of claims after a cursor; with True, a dry run."""


def say(where: Where, filters: Filters, verb: ManyVerb, done: str, as_json: bool) -> int:
    """Call `verb` page by page after a confirmation, show the result for each claim, and return the exit code.

    `done` is the participle for the summaries: `released`. Raises InvalidRequest if nobody can be asked.
    """
    confirmation.ask(
        filters.yes or filters.dry_run,
        lambda: confirmation.claims_that(where, lambda fleet: verb(fleet, "", True), f"will be {done}"),
    )

    async def every_page(fleet: Fleet) -> BulkPage:
        found: list[BulkResult] = []
        after: str | None = ""
        others = 0
        while after is not None:
            progress.report("claims", len(found))
            page = await verb(fleet, after, filters.dry_run)
            found += page.results
            others += page.of_others
            after = page.next
        return BulkPage(_without_superseded(found), of_others=others)

    with shown(BEING.get(done, done)):
        found = with_fleet(where, every_page)
    refused = any(one.outcome is BulkOutcome.REFUSED for one in found.results)
    if as_json:
        tables.show_json(json_of(found))
    else:
        none = "no claims that this token may change" if found.of_others else "no claims"
        tables.show_table(HEADS, map(_row, found.results), none)
        _show_counts(found.results, done)
        _show_others(found.of_others, done)
    return ClaimState.exit_code if refused else 0


def _without_superseded(found: Sequence[BulkResult]) -> tuple[BulkResult, ...]:
    """Leave out refusals of claims that had moved, and came again on a later page, where it was done."""
    done = {one.claim_id for one in found if one.outcome is not BulkOutcome.REFUSED}
    return tuple(one for one in found if one.outcome is not BulkOutcome.REFUSED or one.claim_id not in done)


def _show_others(number: int, done: str) -> None:
    """Show how many matching claims are left alone because of their owners, and who may change them."""
    if number:
        tables.say(
            f"{counted(number, 'claim')} of other owners cannot be {done} with this token, only with those of their "
            "owners, or with one that an operator has made with `redsched token new --project-wide`"
        )


def _row(one: BulkResult) -> tuple[Any, ...]:
    why = f": {one.problem.problem}" if one.problem else ""
    return one.claim_id, one.host, one.state, f"{one.outcome}{why}"


def _show_counts(found: Sequence[BulkResult], done: str) -> None:
    counts = Counter(str(one.outcome) for one in found)
    if selected := counts.pop(BulkOutcome.SELECTED, 0):  # all of them: the outcome of a dry run
        print(f"dry run: {selected} claim{'s' * (selected > 1)} would be {done}")
    if counts:
        print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
