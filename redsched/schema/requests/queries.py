"""The query parameters of lists, bulk verbs and deletions."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from redsched.model import ListedState, ListedStatus
from redsched.schema.types import GivenLeaseS, GivenName, GivenToken, Strict

MAX_VALUES = 100
AnyName = Annotated[list[GivenName], Field(max_length=MAX_VALUES, description="Given several times: any of them.")]


class PageQuery(Strict):
    """The page of a list."""

    # Not strict: query parameters are text, so "100" must become 100.
    model_config = ConfigDict(strict=False, extra="forbid")

    limit: Annotated[int, Field(ge=1, le=1000, description="How many at most.")] = 100
    after: Annotated[str, Field(pattern=r"^[!-~]{0,200}$", description="`next` of the page before.")] = ""


class ClaimsQuery(PageQuery):
    """Filters of claims. A filter that is given several times matches any of its values."""

    host: AnyName = Field(default_factory=list)
    project: AnyName = Field(default_factory=list)
    consumer: AnyName = Field(default_factory=list)
    zone: AnyName = Field(default_factory=list)
    state: Annotated[
        list[ListedState],
        Field(max_length=MAX_VALUES, description="Ended claims are not listed, except shelved ones."),
    ] = Field(default_factory=list)
    cell: AnyName = Field(default_factory=list)


class BulkQuery(ClaimsQuery):
    """Filters of a bulk call, at least one of which is required, and whether it is a dry run."""

    dry_run: Annotated[bool, Field(description="Show which claims are meant, and do nothing.")] = False


class BulkReleaseQuery(BulkQuery):
    """The same, and how the claims are released."""

    force: Annotated[bool, Field(description="Free at once, although their hosts may still run them.")] = False


class BulkRenewQuery(BulkQuery):
    """The same, and the requested lease."""

    lease_s: GivenLeaseS


class ClaimEventsQuery(PageQuery):
    """Filters of one claim's events, and whether to start at the newest."""

    kind: AnyName = Field(default_factory=list)
    newest: Annotated[bool, Field(description="The latest ones, by their times; not with `after`.")] = False


class EventsQuery(ClaimEventsQuery):
    """Filters of events, and whether to start at the newest."""

    claim: AnyName = Field(default_factory=list)
    project: AnyName = Field(default_factory=list)
    host: AnyName = Field(default_factory=list)


class HostsQuery(PageQuery):
    """Filters of a list of hosts."""

    zone: AnyName = Field(default_factory=list)
    status: Annotated[
        list[ListedStatus],
        Field(max_length=MAX_VALUES, description="Given several times: any of them. lost: written off and not back."),
    ] = Field(default_factory=list)


class ReleaseQuery(Strict):
    """Options of releasing a claim."""

    model_config = ConfigDict(strict=False, extra="forbid")

    force: Annotated[bool, Field(description="Free at once, although its host may still run it.")] = False
    token: Annotated[GivenToken | Literal[""], Field(description="Release only the placement with this token.")] = ""


class ForgetQuery(Strict):
    """Options of deleting an object that may be in use."""

    model_config = ConfigDict(strict=False, extra="forbid")

    force: Annotated[bool, Field(description="Although it holds claims, has members or is in use.")] = False


class ExplainQuery(Strict):
    """The hosts to explain in detail."""

    model_config = ConfigDict(strict=False, extra="forbid")

    host: Annotated[list[GivenName], Field(max_length=1000, description="Show every check of these hosts.")] = Field(
        default_factory=list
    )
    limit: Annotated[
        int, Field(ge=0, le=1000, description="Show every check of so many hosts, in the order of their names.")
    ] = 0
    after: Annotated[str, Field(pattern=r"^[!-~]{0,200}$", description="The last host of the page before.")] = ""


class InboxQuery(Strict):
    """The position to read an inbox from."""

    after: Annotated[str, Field(pattern=r"^([0-9]{1,19}(-[0-9]{1,19})?)?$", description="The last entry seen.")] = ""


class UsageQuery(Strict):
    """The keys to sum usage by."""

    model_config = ConfigDict(strict=False, extra="forbid")

    by: Annotated[
        list[Annotated[str, Field(pattern=r"^(class|zone|project)(,(class|zone|project)){0,2}$")]],
        Field(max_length=MAX_VALUES, description="class, zone or project; several times, or with commas between."),
    ] = Field(default_factory=lambda: ["class"])
