"""Bodies of the verbs of claims, and of operator actions on hosts."""

from typing import Annotated

from pydantic import ConfigDict, Field

from redsched.model import MAX_ALTERNATES, MAX_DEADLINE_S, MAX_WAIT_S, AtDeadline
from redsched.model.request_fields import QUEUE_TIMEOUT
from redsched.model.types import Amount, GivenHost, GivenLeaseS, GivenSlot, GivenToken, ResourceClass
from redsched.model.validation import MAX_STATUS_REASON
from redsched.requests import Strict

QueueTimeoutS = Annotated[int, Field(ge=0, le=MAX_WAIT_S, description=QUEUE_TIMEOUT)]


class TokenBody(Strict):
    """The token of the claim's placement, as returned by the selection."""

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
        tuple[GivenHost, ...] | None,
        Field(
            max_length=MAX_ALTERNATES,
            description="Hosts to try. null: any host except those on which it failed. []: none.",
        ),
    ] = None

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"token": "1790000000000-9f3a12cd.4711", "alternates": ["h18"]}]}
    )


class MoveBody(TokenBody):
    """The token, the target hosts and the deadline."""

    hosts: Annotated[
        tuple[GivenHost, ...], Field(max_length=1000, description="Move only to these hosts. Empty: any host.")
    ] = ()
    live: Annotated[bool, Field(description="The work continues during the move, which then has a deadline.")] = False
    deadline_s: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_DEADLINE_S,
            description="Seconds within which the target must be active. 0: no deadline, or 300 s if live.",
        ),
    ] = 0
    queue_timeout_s: QueueTimeoutS = 0

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"token": "1790000000000-9f3a12cd.4711", "live": True, "deadline_s": 300}]}
    )


class ResizeBody(TokenBody):
    """The token, and the new amounts. Amounts that are not listed do not change; 0 removes an amount."""

    resources: Annotated[
        dict[ResourceClass, Amount],
        Field(max_length=64, description="Amounts by class, in the slot that the claim takes the class from."),
    ] = Field(default_factory=dict)
    slots: Annotated[dict[GivenSlot, Amount], Field(max_length=64, description="Amounts by slot.")] = Field(
        default_factory=dict
    )

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"token": "1790000000000-9f3a12cd.4711", "resources": {"VCPU": 4}}]}
    )


class UnshelveBody(Strict):
    """Options of unshelving a claim."""

    queue_timeout_s: QueueTimeoutS = 0

    model_config = ConfigDict(json_schema_extra={"examples": [{"queue_timeout_s": 10}]})


StatusReason = Annotated[
    str, Field(max_length=MAX_STATUS_REASON, description="Why, as one line. Kept and shown until the host is enabled.")
]


class DrainBody(Strict):
    """Options of draining a host."""

    move: Annotated[bool, Field(description="Move its claims to other hosts, a few each second.")] = False
    deadline_s: Annotated[
        int, Field(ge=0, le=MAX_DEADLINE_S, description="Seconds for which claims are moved. 0: no deadline.")
    ] = 0
    then: Annotated[
        AtDeadline | None, Field(description="What happens to the remaining claims at the deadline. null: keep.")
    ] = None
    reason: StatusReason = ""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"move": True, "deadline_s": 600, "then": "stop", "reason": "new GPUs"}]}
    )


class DisableBody(Strict):
    """Options of disabling a host."""

    reason: StatusReason = ""
    ahead: Annotated[
        bool, Field(description="Also if it has never reported: then it joins disabled. Enabling it withdraws that.")
    ] = False

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "new firmware"}]})


class LostBody(Strict):
    """Options of writing a host off."""

    evacuate: Annotated[bool, Field(description="Place its claims on other hosts, one by one.")] = False
    force: Annotated[
        bool, Field(description="Write it off even if its lease is valid, because its machine is known to be off.")
    ] = False
    reason: StatusReason = ""

    model_config = ConfigDict(json_schema_extra={"examples": [{"evacuate": True, "reason": "its mainboard is broken"}]})
