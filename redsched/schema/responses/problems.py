"""Problems: the bodies of all 4xx and 5xx responses."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from typing_extensions import TypeAliasType

from redsched import scheduler
from redsched.model import Amounts, ReasonCount
from redsched.model.kept_for import KeptFor
from redsched.schema.answer import Answer, From

# The API fills in the enum, because it defines further problems.
ProblemType = TypeAliasType("ProblemType", Annotated[str, WithJsonSchema({"type": "string", "enum": []})])


class Problem(BaseModel):
    """An RFC 9457 problem. Further members are details for programs."""

    model_config = ConfigDict(extra="allow")

    type: ProblemType
    title: str
    status: int
    detail: Annotated[str, Field(description="The value seen, the rule it broke, and the next step.")]
    request_id: Annotated[str | None, Field(description="The same as in the header `X-Request-Id`.")] = None


class FieldError(BaseModel):
    """One invalid field."""

    field: str
    message: str


class KeptForAnswer(Answer, shows=KeptFor):
    """What a host keeps for a request that waits for room: other claims do not get it, free or not."""

    slots: Annotated[dict[str, int], From("amounts"), Field(description="The amounts by slot.")]
    request: Annotated[
        str,
        Field(description="The claim id it asks for, else its request id or reservation; empty for those of others."),
    ]
    project: Annotated[str, Field(description="Its project; likewise.")]


class ClaimInTheWay(Answer):
    """A claim whose end would help."""

    claim_id: str
    project: str


def _claims(miss: scheduler.Miss) -> list[dict[str, str]]:
    return [{"claim_id": claim_id, "project": project} for claim_id, project in miss.claims.items()]


class Miss(Answer, shows=scheduler.Miss):
    """A host that nearly fits."""

    host: str
    needs: Amounts
    free: Amounts
    changes: Annotated[
        list[str], Field(description="Changes that together would make it fit; empty if none were found.")
    ]
    after: Annotated[str, Field(description="The claim whose end alone would make it fit.")] = ""
    claims: Annotated[
        list[ClaimInTheWay],
        From(_claims, "claims", lambda claims: {one.claim_id: one.project for one in claims}),
        Field(
            default_factory=list,
            description="Claims in the way: as few as possible whose end would make it fit. A tenant gets its own.",
        ),
    ]
    other_claims: Annotated[
        int, Field(description="Number of further claims in the way, which are not those of the caller.")
    ] = 0
    both: Annotated[bool, Field(description="Whether the changes help only once the claims in the way have ended.")] = (
        False
    )
    kept: Annotated[
        KeptForAnswer | None, Field(description="What the host keeps of these classes for a request that waits.")
    ] = None
    member: Annotated[str, Field(description="For a gang: the member that the place is for.")] = ""
    places: Annotated[
        dict[str, str],
        Field(
            default_factory=dict,
            description="By class: the pool that has what is `free`; without an entry it is the host itself.",
        ),
    ]
    total_free: Annotated[
        dict[str, int],
        Field(
            default_factory=dict,
            description="Of groups, cells and devices, by class: what is free in all, also in too small places.",
        ),
    ]
    capacity: Annotated[
        dict[str, int], Field(default_factory=dict, description="By class of these: what there is, free or not.")
    ]


class PlacesMissAnswer(Answer, shows=scheduler.PlacesMiss):
    """Why hosts that fit one place have too few places for the `count` of a request."""

    asked: int
    fits: Annotated[int, Field(description="The largest `count` that fits.")]
    rule: Annotated[
        str, Field(description="The reason of the rule without which all would fit; `count` if no single one is.")
    ]
    says: Annotated[str, Field(description="What the rule allows.")] = ""
    without: Annotated[str, Field(description="What to leave out of the request for all places to fit.")] = ""
    by: Annotated[str, Field(description="The topology of the rule: `host`, `zone` or `label:<key>`.")] = ""
    domains: Annotated[
        Mapping[str, int],
        Field(
            default_factory=dict,
            description="For how many places each zone or label value has room by amounts, the fewest first.",
        ),
    ]


class InvalidProblem(Problem):
    """422: `errors` lists the invalid fields."""

    errors: list[FieldError] | None = None


class FailedAttempt(Answer):
    """A placement that did not become active, and why."""

    claim_id: str
    host: str
    at_ms: Annotated[int, Field(description="When it ended, or when a scheduler found that it had.")]
    kind: Annotated[
        str, Field(description="An end reason such as `failed` or `expired`; `not-confirmed`; `unknown`: it was lost.")
    ]
    reason: Annotated[str, Field(description="The cause as text; empty if none was given.")]


class NotConfirmedProblem(Problem):
    """504: a selection with `until: active` was not confirmed in time; its failed attempts on each host."""

    claim_ids: list[str] | None = None
    failed_attempts: Annotated[
        list[FailedAttempt] | None,
        Field(description="Failed attempts by claim, in the order in which they were found."),
    ] = None


class NoValidHostProblem(Problem):
    """409: no host fits; the reasons, and the nearest misses."""

    reasons: list[ReasonCount] | None = None
    nearest: list[Miss] | None = None
    cut_short: Annotated[
        bool | None, Field(description="true: the search for changes took too long, so that some may be missing.")
    ] = None
    places: Annotated[
        PlacesMissAnswer | None, Field(description="Hosts fit one place, but not all: the rule, and how many fit.")
    ] = None
    slot: Annotated[str | None, Field(description="Of a resize: the slot that refuses its amount.")] = None
    asked: Annotated[int | None, Field(description="Of a resize: that amount.")] = None
    rule: Annotated[
        str | None,
        Field(description="Of a resize: what refuses it: `room`, `kept`, `min_unit`, `max_unit` or `step_size`."),
    ] = None
    value: Annotated[
        int | None,
        Field(description="Of a resize: the value of the rule; of `room`, the most that it may have."),
    ] = None
    next: Annotated[
        list[int] | None, Field(description="Of a resize: the next smaller and larger amount that it can get, or has.")
    ] = None
    kept: Annotated[
        KeptForAnswer | None, Field(description="Of a resize: what the host keeps for a request that waits.")
    ] = None
