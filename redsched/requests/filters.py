"""The query parameters of lists, bulk verbs and deletions."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from redsched.errors import InvalidRequest
from redsched.model import ListedState, ListedStatus
from redsched.model.filters import ME, EventFilter
from redsched.model.records.capacity import CapacityBy
from redsched.model.types import GivenEntryId, GivenHost, GivenLeaseS, GivenName, GivenToken
from redsched.model.validation import OWNER_PATTERN
from redsched.origin import MAX_ACTOR, MAX_REQUEST_ID
from redsched.requests import Strict

MAX_VALUES = 100
EVENT_NAMES = ("claim", "project", "host", "kind", "actor", "request_id")
AnyHost = Annotated[list[GivenHost], Field(max_length=MAX_VALUES, description="Repeatable: matches any of the values.")]
AnyName = Annotated[list[GivenName], Field(max_length=MAX_VALUES, description="Repeatable: matches any of the values.")]


class PageQuery(Strict):
    """The page of a list."""

    # Not strict: query parameters are text, so "100" must become 100.
    model_config = ConfigDict(strict=False, extra="forbid")

    limit: Annotated[int, Field(ge=1, le=1000, description="Maximum number of items.")] = 100
    after: Annotated[str, Field(pattern=r"^[!-~]{0,200}$", description="`next` of the previous page.")] = ""


class ClaimsQuery(PageQuery):
    """Filters of claims. A repeated filter matches any of its values."""

    after: Annotated[str, Field(pattern=r"^[!-~]{0,4000}$", description="`next` of the previous page.")] = ""
    host: AnyHost = Field(default_factory=list)
    project: AnyName = Field(default_factory=list)
    consumer: AnyName = Field(default_factory=list)
    zone: AnyName = Field(default_factory=list)
    state: Annotated[
        list[ListedState],
        Field(max_length=MAX_VALUES, description="Repeatable. Ended claims are not listed, except shelved ones."),
    ] = Field(default_factory=list)
    cell: AnyName = Field(default_factory=list)
    owner: Annotated[
        list[Annotated[str, Field(pattern=rf"^({ME}|{OWNER_PATTERN[1:-1]})?$")]],
        Field(
            max_length=MAX_VALUES, description=f"Who owns the claim; `{ME}` is the caller; empty: nobody. Repeatable."
        ),
    ] = Field(default_factory=list)
    claimed_before_ms: Annotated[int, Field(ge=0, description="Claimed before this time, Unix ms. 0: any.")] = 0
    claimed_after_ms: Annotated[int, Field(ge=0, description="Claimed at this time or later, Unix ms. 0: any.")] = 0


class BulkQuery(ClaimsQuery):
    """Filters of a bulk call, at least one of which is required, and whether it is a dry run."""

    dry_run: Annotated[bool, Field(description="List the selected claims without changing them.")] = False


class BulkReleaseQuery(BulkQuery):
    """The parameters of a bulk call, and how to release the claims."""

    force: Annotated[bool, Field(description="Free the claims at once, even if their hosts still run them.")] = False


class BulkRenewQuery(BulkQuery):
    """The parameters of a bulk call, and the requested lease."""

    lease_s: GivenLeaseS


class ClaimEventsQuery(PageQuery):
    """Filters of one claim's events, and whether to return the newest."""

    after: Annotated[
        str,
        Field(
            pattern=r"^[!-~]{0,4000}$", description="`next` of the previous page, or the `id` of the last event read."
        ),
    ] = ""
    kind: AnyName = Field(default_factory=list)
    newest: Annotated[bool, Field(description="Return the latest events, by time. Excludes `after`.")] = False


class EventsQuery(ClaimEventsQuery):
    """Filters of events, and whether to return the newest."""

    claim: AnyName = Field(default_factory=list)
    project: AnyName = Field(default_factory=list)
    host: AnyHost = Field(default_factory=list)
    actor: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=MAX_ACTOR)]],
        Field(max_length=MAX_VALUES, description="Who caused the event. Repeatable: matches any of the values."),
    ] = Field(default_factory=list)
    request_id: Annotated[
        list[Annotated[str, Field(pattern=rf"^[A-Za-z0-9._-]{{1,{MAX_REQUEST_ID}}}$")]],
        Field(max_length=MAX_VALUES, description="The request that caused the event. Repeatable."),
    ] = Field(default_factory=list)
    since_ms: Annotated[int, Field(ge=0, description="It happened at this time or later, Unix ms. 0: any.")] = 0
    before_ms: Annotated[int, Field(ge=0, description="It happened before this time, Unix ms. 0: any.")] = 0

    def wanted(self) -> EventFilter:
        """Return the filter of the library."""
        return EventFilter(**self.model_dump(include={"since_ms", "before_ms", *EVENT_NAMES}))


class HostQuery(Strict):
    """Which host is meant."""

    model_config = ConfigDict(strict=False, extra="forbid")

    cell: Annotated[
        GivenName | Literal[""], Field(description="Its cell: required only if two cells have a host with this name.")
    ] = ""


class HostsQuery(PageQuery):
    """Filters of a list of hosts."""

    zone: AnyName = Field(default_factory=list)
    status: Annotated[
        list[ListedStatus],
        Field(
            max_length=MAX_VALUES,
            description="Repeatable: any of the values. down: its lease ended; lost: written off, not returned since.",
        ),
    ] = Field(default_factory=list)
    trait: AnyName = Field(default_factory=list)
    aggregate: AnyName = Field(default_factory=list)
    label: Annotated[
        list[Annotated[str, Field(pattern=r"^[^=]{1,128}=[ -~]{0,2047}$")]],
        Field(max_length=MAX_VALUES, description="A label as `KEY=VALUE`. Repeatable: matches any of the values."),
    ] = Field(default_factory=list)
    fits: Annotated[
        list[Annotated[str, Field(pattern=r"^[A-Z0-9_]{1,255}=[0-9]{1,16}$")]],
        Field(
            max_length=MAX_VALUES,
            description="An amount as `CLASS=AMOUNT`. Repeatable: hosts that could give all of them to one claim now.",
        ),
    ] = Field(default_factory=list)

    def filters(self) -> dict[str, Any]:
        """Return the arguments of the library. Raises InvalidRequest for a class that is given twice."""
        given = self.model_dump()
        return given | {"fits": amounts_of(given["fits"]) or None}


def amounts_of(pairs: Iterable[str]) -> dict[str, int]:
    """Return amounts by class of texts such as `VCPU=2`. Raises InvalidRequest for a class that is given twice."""
    found: dict[str, int] = {}
    for name, _, amount in (pair.partition("=") for pair in pairs):
        if name in found:
            raise InvalidRequest(f"fits has {name} twice: give each class once")
        found[name] = int(amount)
    return found


class ReleaseQuery(Strict):
    """Options of releasing a claim."""

    model_config = ConfigDict(strict=False, extra="forbid")

    force: Annotated[bool, Field(description="Free the claim at once, even if its host still runs it.")] = False
    token: Annotated[GivenToken | Literal[""], Field(description="Release only the placement with this token.")] = ""


class ForgetQuery(Strict):
    """Options of deleting an object that may be in use."""

    model_config = ConfigDict(strict=False, extra="forbid")

    force: Annotated[bool, Field(description="Delete it even if it holds claims, has members or is in use.")] = False


class RemoveHostQuery(HostQuery, ForgetQuery):
    """Which host is removed, and how."""


class ExplainQuery(Strict):
    """The hosts to explain in detail."""

    model_config = ConfigDict(strict=False, extra="forbid")

    host: Annotated[
        list[GivenHost], Field(max_length=1000, description="Hosts to show every check of. Repeatable.")
    ] = Field(default_factory=list)
    limit: Annotated[int, Field(ge=0, le=1000, description="Show every check of this many hosts, sorted by name.")] = 0
    after: Annotated[str, Field(pattern=r"^[!-~]{0,200}$", description="The last host of the previous page.")] = ""


class InboxQuery(Strict):
    """The position to read an inbox from."""

    after: Annotated[GivenEntryId, Field(description="The `entry_id` of the last entry read.")] = ""


class CellQuery(Strict):
    """The cell of the hosts."""

    cell: Annotated[GivenName | Literal[""], Field(description="The hosts' cell. Empty: the only one.")] = ""


class UsageQuery(Strict):
    """The keys to sum usage by."""

    model_config = ConfigDict(strict=False, extra="forbid")

    by: Annotated[
        list[Annotated[str, Field(pattern=r"^(class|zone|project)(,(class|zone|project)){0,2}$")]],
        Field(max_length=MAX_VALUES, description="class, zone or project. Repeatable, or separated by commas."),
    ] = Field(default_factory=lambda: ["class"])


class CapacityQuery(Strict):
    """What amounts are summed by, besides their class."""

    model_config = ConfigDict(strict=False, extra="forbid")

    by: Annotated[
        CapacityBy | None, Field(description="zone, aggregate, project or consumer. Default: all in one row.")
    ] = None
