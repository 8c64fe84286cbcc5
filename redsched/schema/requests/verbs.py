"""Bodies of the verbs of claims, and of operator actions on hosts."""

from typing import Annotated

from pydantic import ConfigDict, Field

from redsched.model import MAX_ALTERNATES, MAX_WAIT_S, AtDeadline
from redsched.schema.types import Amount, GivenLeaseS, GivenName, GivenSlot, GivenToken, ResourceClass, Strict

MAX_DEADLINE_S = 86_400

QueueTimeoutS = Annotated[int, Field(ge=0, le=MAX_WAIT_S, description="Seconds to wait for room.")]


class TokenBody(Strict):
    """The token of the claim's placement, as its selection returned it."""

    token: GivenToken

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": "1790000000000-9f3a12cd.4711"}]})


class RenewBody(TokenBody):
    """The token, and the requested lease."""

    lease_s: GivenLeaseS = 120

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"token": "1790000000000-9f3a12cd.4711", "lease_s": 600}]}
    )


class FailBody(TokenBody):
    """The token, and the hosts to try next."""

    alternates: Annotated[
        tuple[GivenName, ...] | None,
        Field(max_length=MAX_ALTERNATES, description="Hosts to try. null: any but those that failed; []: none."),
    ] = None

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"token": "1790000000000-9f3a12cd.4711", "alternates": ["h18"]}]}
    )


class MoveBody(TokenBody):
    """The token, the target hosts and the deadline."""

    hosts: Annotated[tuple[GivenName, ...], Field(max_length=1000, description="Only to these. Empty: any.")] = ()
    live: Annotated[bool, Field(description="The work goes on meanwhile: the move has a deadline.")] = False
    deadline_s: Annotated[
        int,
        Field(ge=0, le=MAX_DEADLINE_S, description="Seconds until the target must be active. 0: any, or 300 if live."),
    ] = 0
    queue_timeout_s: QueueTimeoutS = 0

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"token": "1790000000000-9f3a12cd.4711", "live": True, "deadline_s": 300}]}
    )


class ResizeBody(TokenBody):
    """The token, and the new amounts: those that are not named stay as they are, and 0 gives an amount up."""

    resources: Annotated[
        dict[ResourceClass, Amount], Field(max_length=64, description="Amounts by class, of the pool that it is of.")
    ] = Field(default_factory=dict)
    slots: Annotated[dict[GivenSlot, Amount], Field(max_length=64, description="Amounts by slot.")] = Field(
        default_factory=dict
    )

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"token": "1790000000000-9f3a12cd.4711", "resources": {"VCPU": 4}}]}
    )


class UnshelveBody(Strict):
    """Options of placing a shelved claim again."""

    queue_timeout_s: QueueTimeoutS = 0

    model_config = ConfigDict(json_schema_extra={"examples": [{"queue_timeout_s": 10}]})


class DrainBody(Strict):
    """Options of draining a host."""

    move: Annotated[bool, Field(description="Place its claims elsewhere, a few each second.")] = False
    deadline_s: Annotated[
        int, Field(ge=0, le=MAX_DEADLINE_S, description="Seconds for which claims are moved. 0: any time.")
    ] = 0
    then: Annotated[
        AtDeadline | None, Field(description="What becomes of the claims that are left at the deadline. null: keep.")
    ] = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"move": True, "deadline_s": 600, "then": "stop"}]})


class LostBody(Strict):
    """Options of writing a host off."""

    evacuate: Annotated[bool, Field(description="Place its claims elsewhere, one by one.")] = False
    force: Annotated[bool, Field(description="Although its lease runs: its machine is known to be off.")] = False

    model_config = ConfigDict(json_schema_extra={"examples": [{"evacuate": True}]})
