"""`redsched claim list`, `show` and `release`."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from redsched.cli import completion, confirmation, options
from redsched.cli.fleet import ANYWHERE, Fleet, Where, with_fleet
from redsched.cli.options import (
    After,
    AsJson,
    ClaimArgument,
    Force,
    Limit,
    Many,
    Mine,
    NewerThan,
    OlderThan,
    about,
    many,
    takes,
)
from redsched.cli.output import formats, tables
from redsched.cli.output.formats import GONE, claim_text, natural
from redsched.cli.output.listings import Column, Form, Listing, SortOption, show_page, sorted_page
from redsched.cli.verbs import bulk
from redsched.cli.watching import WatchOption, find_and_show
from redsched.model import (
    ENDING_OR_ENDED,
    HELD,
    Claim,
    ClaimStatus,
    DecisionNote,
    EndReason,
    FromWhy,
    GangOnExit,
    ListedState,
    Placement,
    Token,
)
from redsched.model.claims import plain_text
from redsched.model.record import json_of
from redsched.model.records.bulk import BulkPage
from redsched.model.records.pages import CLAIMS, Page
from redsched.model.validation import check_name
from redsched.requests.filters import ReleaseQuery

CLAIM_HEADS = ("CLAIM", "STATE", "HOST", "AMOUNTS", "PROJECT")
MAX_SHOWN = 300
"""The most characters of a payload that `claim show` prints without --json."""
LEAVES: Mapping[str, str] = {
    "evacuate": "waits for another place, as {} was written off",
    "move": "waits for another place, as {} is being drained",
}
CAME: Mapping[FromWhy, str] = {
    FromWhy.WRITTEN_OFF: "that host was written off",
    FromWhy.DRAINED: "that host was drained",
    FromWhy.MOVED: "a call has moved it",
    FromWhy.FAILED: "it failed there",
    FromWhy.EXPIRED: "that host did not take it up in time",
    FromWhy.WORK_ENDED: "its work ended there",
    FromWhy.GANG: "all of its gang was placed again",
    FromWhy.SHELVED: "it was shelved there",
}
"""Why a claim has left a host, in words."""
PLACEMENT_HEADS = ("TOKEN", "STATE", "HOST", "AMOUNTS", "WHY")


@takes(Form, "form")
def list_claims(
    form: Form,
    host: Annotated[Many, many("Only claims on this host.", completed=completion.hosts)] = [],  # noqa: B006 - typer reads it
    project: Annotated[Many, many("Only claims of this project.")] = [],  # noqa: B006
    consumer: Annotated[Many, many("Only claims for this consumer.")] = [],  # noqa: B006
    state: Annotated[list[ListedState], many("Only claims in this state; ended ones are not listed.")] = [],  # noqa: B006
    zone: Annotated[Many, many("Only claims on hosts in this zone.")] = [],  # noqa: B006
    cell: Annotated[Many, many("Only claims in this cell.")] = [],  # noqa: B006
    owner: Annotated[Many, many("Only claims of this owner.")] = [],  # noqa: B006
    mine: Mine = False,
    older_than: OlderThan = 0,
    newer_than: NewerThan = 0,
    sort: SortOption = "",
    watch: WatchOption = False,
    limit: Limit = 100,
    after: After = "",
    where: Where = ANYWHERE,
) -> None:
    """List claims."""
    given = {"host": host, "project": project, "consumer": consumer, "zone": zone, "cell": cell}
    wanted: dict[str, Any] = {name: options.filter_names(name, value) for name, value in given.items()}
    wanted |= options.ages(older_than, newer_than) | {"owner": options.owners(owner, mine)}

    async def find(fleet: Fleet) -> Page[Claim]:
        async def fetch(most: int, cursor: str) -> Page[Claim]:
            return await fleet.claims.list(**wanted, state=state, limit=most, after=cursor)

        return await sorted_page(
            fetch, ORDERS, sort, limit, after, lambda one: (natural(one.host), natural(one.claim_id))
        )

    def show_found(page: Page[Claim]) -> None:
        show_page(LISTING, page, CLAIMS.values, form)

    find_and_show(where, watch, find, show_found)


def show(claim: ClaimArgument, as_json: AsJson = False, where: Where = ANYWHERE) -> None:
    """Show one claim: placements, attempts, last failure, why it is where it is."""
    found = with_fleet(where, lambda s: s.claims.get(claim), read_only=True)
    return tables.show_json(json_of(found)) if as_json else _show_claim(found)


@bulk.takes_filters
def release(
    filters: bulk.Filters,
    claim: Annotated[
        list[str],
        typer.Argument(
            metavar="CLAIM", help="Ids of the claims.", show_default=False, autocompletion=completion.claims
        ),
    ] = [],  # noqa: B006 - typer reads it, nobody writes it
    token: Annotated[str, typer.Option(help=about(ReleaseQuery, "token"), show_default=False)] = "",
    force: Force = False,
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> int:
    """Release claims, by id or by filters.

    A claim whose work runs is `ending` until its host reports that the work is gone.
    """
    wanted = filters.or_ids(claim, token)
    if wanted is None:
        if force:
            confirmation.ask(filters.yes, lambda: confirmation.claims_freed(where, claim))
        _release_each(claim, token, force, as_json, where)
        return 0

    async def page(fleet: Fleet, after: str, dry_run: bool) -> BulkPage:
        return await fleet.bulk.release(wanted, force, dry_run, bulk.PAGE, after)

    return bulk.say(where, filters, page, "released", as_json)


def _release_each(claim: Sequence[str], token: str, force: bool, as_json: bool, where: Where) -> None:
    checked = str(Token.parse(token)) if token else ""
    for one in claim:
        check_name("claim id", one)

    done: dict[str, bool] = {}

    async def release_all(fleet: Fleet) -> None:
        for one in claim:
            done[one] = await fleet.claims.release(one, checked, force=force)

    try:
        with_fleet(where, release_all, on_demand=True)
    finally:  # also if one of them was refused: those before it have been released
        if done:
            _show_released(done, as_json)


def _show_released(done: Mapping[str, bool], as_json: bool) -> None:
    if as_json:
        shown = [{"claim_id": one, "state": "freed" if freed else "ending"} for one, freed in done.items()]
        return tables.show_json({"claims": shown})
    for one, freed in done.items():
        print(f"{one} is {'released' if freed else 'ending: its host has yet to report that the work is gone'}")
    return None


def _show_claims(found: Sequence[Claim]) -> None:
    rows = ((one.claim_id, _state(one), _where(one), tables.amounts(one.slots), one.project) for one in found)
    tables.show_table(CLAIM_HEADS, rows, "no claims")


def _show_claim(found: Claim) -> None:
    _show_claims([found])
    rows = ((one.token, one.state, one.host, tables.amounts(one.slots), _why(one)) for one in found.placements)
    tables.show_table(PLACEMENT_HEADS, rows, f"no placements; the last token was {found.token}")
    if found.waits_to_leave:
        tables.say(f"{LEAVES[found.leaving].format(found.host)}: {found.unmovable or 'a scheduler looks for a place'}")
    for one in found.placements:
        if one.from_host and one.from_why and one.placed_at_ms is not None:
            tables.say(_came(one, one.from_why, one.placed_at_ms))
    for name, value in _facts(found).items():
        tables.say(f"{name}: {value}")
    if found.log:
        print(f"log: {found.log}")  # in one line: it is copied
    if found.restarts:
        print(f"restarts: {found.restarts}")
    if found.next_attempt_at_ms is not None:
        print(f"next attempt: {formats.time_and_age(found.next_attempt_at_ms)}")
    if found.work_ended_at_ms is not None:
        print(f"its work ended at {formats.time_and_age(found.work_ended_at_ms)}; on_exit is {found.on_exit}")
    if found.reason is not None:
        # For a claim that is still alive it is a past failure, however long ago.
        what = "reason" if found.state in ENDING_OR_ENDED else "last failure"
        tables.say(f"{what} on {found.reason.host} at {formats.time_and_age(found.reason.at_ms)}: {found.reason.text}")
    if found.decision is not None:
        _show_decision(found.decision)
    elif found.placements and found.state not in ENDING_OR_ENDED:
        tables.say(f"why {found.host}: not kept; `redsched explain` weighs the hosts as they are now")


def _came(to: Placement, why: FromWhy, at_ms: int) -> str:
    """Return where a placement's claim was before, when it came and why."""
    if to.from_host == to.host:
        return f"placed again on {to.host} at {formats.time_and_age(at_ms)}: {CAME[why]}"
    return f"came to {to.host} from {to.from_host} at {formats.time_and_age(at_ms)}: {CAME[why]}"


def _show_decision(found: DecisionNote) -> None:
    """Show how the host of the newest placement was chosen."""
    tables.say(
        f"why {found.host}: {found.fits} of {found.hosts} hosts fitted "
        f"at {formats.time_and_age(found.at_ms)}, weighed by {found.policy}"
    )
    if found.reasons:
        tables.say(f"left out: {', '.join(one.text for one in found.reasons)}")
    if found.candidate > 1:
        tables.say(f"candidate {found.candidate} was taken: those before it had no room any more")
    if found.ranked:
        weighers = list(found.ranked[0].weighers)
        rows = ((one.host, *(f"{part:.3f}" for part in (one.score, *one.weighers.values()))) for one in found.ranked)
        tables.show_table(("HOST", "SCORE", *weighers), rows, "")


def _facts(found: Claim) -> dict[str, object]:
    """Return the further facts of a claim, by name."""
    facts = {
        "consumer": found.consumer,
        "owner": found.owner,
        "server group": found.server_group,
        "end_reason": found.end_reason,
        "released by": found.closed_by if found.end_reason is EndReason.RELEASED else "",
        "shelved by": found.closed_by if found.end_reason is EndReason.SHELVED else "",
        "gang_on_exit": "" if found.gang_on_exit is GangOnExit.KEEP else found.gang_on_exit,
        "attempts": f"{found.attempts} of {found.max_attempts}",
        "runtime": _runtime(found),
        "alternates": " ".join(found.alternates),
        "payload": _payload(found),
        "made by": found.actor,
        "request id": found.request_id,
    }
    return {name: value for name, value in facts.items() if value}


def _payload(found: Claim) -> str:
    """Return the beginning of a claim's payload as JSON; '' if it has none."""
    if found.payload is None:
        return ""
    text = plain_text(json.dumps(found.payload, ensure_ascii=False))
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... (--json shows all of it)"


def _runtime(found: Claim) -> str:
    """Return how long a claim's work may run, and until when; '' if that is not limited."""
    if found.runtime_deadline_ms is None:
        return ""
    return f"at most {found.max_runtime_s} s, until {formats.time_and_age(found.runtime_deadline_ms)}"


def _state(one: Claim) -> object:
    """Return a claim's state, and for an active claim whether its work has ended, or its host is down."""
    text = claim_text(one)
    if one.host_condition in GONE and one.state in HELD:
        return formats.bad(text)
    worries = one.state is ClaimStatus.PENDING or text != one.state
    return formats.caution(text) if worries else text


def _why(one: Placement) -> object:
    """Return why a placement ends or has ended."""
    return formats.bad(one.end_reason) if one.end_reason is EndReason.FAILED else one.end_reason


def _where(one: Claim) -> str:
    """Return a claim's host, and the host that it is being moved to."""
    return f"{one.host} to {one.target.host}" if one.target else one.host


def _age(one: Claim) -> str:
    return "" if one.claimed_at_ms is None else formats.age(one.claimed_at_ms)


def _claimed(one: Claim) -> str:
    return "" if one.claimed_at_ms is None else formats.time(one.claimed_at_ms)


def _expires_in(one: Claim) -> str:
    return "" if one.expires_at_ms is None else formats.age(one.expires_at_ms)


def _expires(one: Claim) -> object:
    """Return when a claim ends by itself unless it is confirmed or renewed."""
    if one.expires_at_ms is None:
        return ""
    return formats.Dated(formats.time(one.expires_at_ms), one.expires_at_ms)


LISTING: Listing[Claim] = Listing(
    (
        Column("CLAIM", lambda one: one.claim_id),
        Column("STATE", _state, leave=6),
        Column("HOST", _where),
        Column("AMOUNTS", lambda one: tables.amounts(one.slots), leave=5),
        Column("PROJECT", lambda one: one.project, leave=4),
        Column("OWNER", lambda one: one.owner, leave=3, only_fitted=True),
        Column("AGE", _age, leave=1, only_fitted=True),
        Column("EXPIRES", _expires_in, leave=2, only_fitted=True),
        Column("OWNER", lambda one: one.owner, only_wide=True),
        Column("CONSUMER", lambda one: one.consumer, only_wide=True),
        Column("CLAIMED", _claimed, only_wide=True),
        Column("EXPIRES", _expires, only_wide=True),
        Column("TOKEN", lambda one: one.token, only_wide=True),
        Column("CELL", lambda one: one.cell, only_wide=True),
    ),
    name=lambda one: one.claim_id,
    empty="no claims",
)
ORDERS: Mapping[str, Callable[[Claim], Any]] = {
    "claim": lambda one: natural(one.claim_id),
    "state": lambda one: one.state,
    "host": lambda one: natural(one.host),
    "project": lambda one: natural(one.project),
    "owner": lambda one: natural(one.owner),
    "age": lambda one: -(one.claimed_at_ms or 0),
    "expires": lambda one: one.expires_at_ms or math.inf,
}
"""What claims can be sorted by: `age` has the youngest first, `expires` the one whose lease ends first."""
