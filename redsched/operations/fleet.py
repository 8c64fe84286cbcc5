"""The operations of a fleet, and its groups of operations."""

import secrets
from collections.abc import Mapping
from dataclasses import fields as dataclass_fields, replace
from difflib import get_close_matches
from typing import Any

from redsched.auth.policy import OPEN, OWN_PROJECTS_OR_DRY_RUNS, READ, READ_OWN_PROJECTS
from redsched.errors import (
    ClaimIdReused,
    ClaimState,
    InvalidRequest,
    NotConfirmed,
    NotFound,
    NoValidHost,
    OutcomeUnknown,
    PlannerBusy,
    QuotaExceeded,
    Settling,
    TooHard,
)
from redsched.model import OneOf, Request
from redsched.model.filters import UsageBy
from redsched.model.records.capacity import Capacity, CapacityBy, CapacityRow
from redsched.model.records.declared import Usage, UsageRow
from redsched.model.records.explanations import Explanation
from redsched.model.records.selections import ClaimedPlaces, Selections
from redsched.model.records.service import About
from redsched.model.records.status import StatusReport
from redsched.operations.claims import Bulk, Claims
from redsched.operations.declared import Aggregates, Quotas, ServerGroups, SharedPools
from redsched.operations.events import Events
from redsched.operations.hosts import Hosts
from redsched.operations.operation import Arguments, Link, Mode, Part, Reply, Sent, operation, query, read_record
from redsched.operations.plans import Plans
from redsched.operations.route import Route

Asked = Request | Mapping[str, int]
"""A request, or its amounts by class."""
CONFIRM_MARGIN_S = 5
"""How long beyond its lease a placement has to confirm, if a request sets no `confirm_timeout_s`."""
EXAMPLES: Mapping[str, Any] = {
    "small": {"resources": {"VCPU": 2, "MEMORY_MB": 4096}},
    "spread_with_alternates": {
        "resources": {"VCPU": 2, "MEMORY_MB": 4096},
        "required": ["HW_CPU_X86_AVX2"],
        "zone": "az1",
        "alternates": 2,
        "project": "web",
    },
    "gang": {
        "members": [
            {"name": "db", "count": 2, "resources": {"VCPU": 1, "MEMORY_MB": 1024}},
            {"name": "web", "resources": {"VCPU": 1}, "any_of": [["HW_CPU_X86_AVX2", "HW_CPU_X86_AVX512F"]]},
        ],
        "relations": [{"type": "same-zone", "members": ["db", "web"]}],
    },
    "pools": {
        "groups": [{"name": "cpus", "resources": {"VCPU": 1}}, {"name": "memory", "resources": {"MEMORY_MB": 512}}],
        "group_policy": "none",
        "query": [">=", "$free.VCPU", 2],
    },
    "dry_run": {"resources": {"VCPU": 1}, "claim": False},
}
SELECT = Route(
    id="select",
    method="POST",
    path="/v1/selections",
    tag="selections",
    summary="Select and claim",
    policy=OWN_PROJECTS_OR_DRY_RUNS,
    answers={201: Selections, 200: Selections},
    errors=(
        ClaimIdReused,
        NoValidHost,
        QuotaExceeded,
        NotConfirmed,
        NotFound,
        ClaimState,
        TooHard,
        PlannerBusy,
        Settling,
        OutcomeUnknown,
    ),
    body="Request",
    examples=EXAMPLES,
    is_repeatable=True,
    notes="201: claimed. 200: a dry run (`claim: false`), or a repeat with the same claim ids, which returns the first "
    "outcome. 504: with `until: active`, the hosts did not confirm in time, and everything is released.",
)


def request_of(asked: Asked, fields: Mapping[str, Any]) -> Request:
    """Return the request with these fields set. Raises InvalidRequest."""
    for name in fields.keys() - _FIELDS:
        closest = get_close_matches(name, _FIELDS, 1)
        hint = f"did you mean {closest[0]}?" if closest else f"use {', '.join(sorted(_FIELDS))}"
        raise InvalidRequest(f"a request has no field {name!r}: {hint}")
    return replace(asked, **fields) if isinstance(asked, Request) else Request(asked, **fields)


_FIELDS = {one.name for one in dataclass_fields(Request)}


def _selects(arguments: Arguments) -> Sent:
    asked = request_of(arguments["request"], arguments["fields"])
    if not asked.claim:
        raise InvalidRequest("the request has claim=False: use dry_run")
    key = arguments["idempotency_key"] or ("" if asked.claim_ids else secrets.token_hex(16))
    return Sent(body=asked.body(), headers={"Idempotency-Key": key} if key else {}, waits_s=_waits_s(asked))


def _waits_s(request: Request) -> float:
    """Return how long the API may take for a selection, beyond an ordinary reply."""
    if request.until != "active":
        return request.queue_timeout_s
    confirming = request.confirm_timeout_s or request.max_attempts * (request.lease_s + CONFIRM_MARGIN_S)
    return request.queue_timeout_s + confirming


def _claimed(reply: Reply) -> ClaimedPlaces:
    found: ClaimedPlaces = read_record(ClaimedPlaces, reply.content)
    return found


def _shows(arguments: Arguments) -> Sent:
    return Sent(body={**request_of(arguments["request"], arguments["fields"]).body(), "claim": False})


def _explains(arguments: Arguments) -> Sent:
    body = request_of(arguments["request"], arguments["fields"]).body()
    asked = query(host=arguments["hosts"], limit=arguments["limit"] or None, after=arguments["after"])
    return Sent(query=asked, body=body)


def _usage(reply: Reply) -> tuple[UsageRow, ...]:
    found: Usage = read_record(Usage, reply.content)
    return found.usage


def _capacity(reply: Reply) -> tuple[CapacityRow, ...]:
    found: Capacity = read_record(Capacity, reply.content)
    return found.capacity


class Fleet(Part[Mode]):
    """What callers can do with a fleet. Most operations are in groups: `claims`, `hosts` and so on."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self.claims: Claims[Mode] = Claims(link)
        self.bulk: Bulk[Mode] = Bulk(link)
        self.hosts: Hosts[Mode] = Hosts(link)
        self.quotas: Quotas[Mode] = Quotas(link)
        self.aggregates: Aggregates[Mode] = Aggregates(link)
        self.server_groups: ServerGroups[Mode] = ServerGroups(link)
        self.shared_pools: SharedPools[Mode] = SharedPools(link)
        self.plans: Plans[Mode] = Plans(link)
        self.events: Events[Mode] = Events(link)

    @operation(SELECT, sends=_selects, reads=_claimed)
    def select(self, /, request: Asked, idempotency_key: str = "", **fields: Any) -> ClaimedPlaces:
        """Select hosts and claim the amounts on them.

        The request is a `Request`, or its amounts by class; `fields` set further fields of a `Request`, or others than
        it has: `select({"VCPU": 2}, project="web")`. Unless it names `claim_ids`, they are derived from a key, by
        default a random one.
        """

    @operation(SELECT, sends=_shows)
    def dry_run(self, /, request: Asked, **fields: Any) -> Selections:
        """Return what `select` would select now, without claiming. The arguments are those of `select`."""

    @operation(
        Route(
            id="explain",
            method="POST",
            path="/v1/explain",
            tag="selections",
            summary="Explain a selection",
            policy=READ_OWN_PROJECTS,
            answers={200: Explanation},
            errors=(NotFound, NoValidHost, TooHard, PlannerBusy, Settling),
            body="Request",
            body_as="request",
            query="ExplainQuery",
            examples=EXAMPLES,
            is_repeatable=True,
        ),
        sends=_explains,
    )
    def explain(
        self, /, request: Asked, hosts: OneOf = None, *, limit: int = 0, after: str = "", **fields: Any
    ) -> Explanation:
        """Explain a selection without claiming: the number of hosts excluded by each reason, and the nearest misses.

        The request is given as to `select`. `hosts`: show every check of these; `limit`: and of so many more, sorted by
        name, after the host `after`. Writes nothing.
        """

    @operation(
        Route(
            id="get_status",
            method="GET",
            path="/v1/status",
            tag="service",
            summary="Get the status",
            policy=READ,
            answers={200: StatusReport},
            notes="The response is 200 also if something is wrong: `healthy` is false then.",
        )
    )
    def status(self) -> StatusReport:
        """Return the state of the store and of all cells, and what is wrong or stuck, with the commands that help."""

    @operation(
        Route(
            id="get_usage",
            method="GET",
            path="/v1/usage",
            tag="quotas",
            summary="Get usage",
            policy=READ_OWN_PROJECTS,
            answers={200: Usage},
            query="UsageQuery",
        ),
        reads=_usage,
    )
    def usage(self, by: OneOf = UsageBy.CLASS) -> tuple[UsageRow, ...]:
        """Return the usage of all claims that have not ended, summed by zone, project and class, as `by` names them."""

    @operation(
        Route(
            id="get_capacity",
            method="GET",
            path="/v1/capacity",
            tag="quotas",
            summary="Get capacity",
            policy=READ_OWN_PROJECTS,
            answers={200: Capacity},
            query="CapacityQuery",
        ),
        reads=_capacity,
    )
    def capacity(self, by: CapacityBy | str | None = None) -> tuple[CapacityRow, ...]:
        """Return by class how much there is, is claimed and is free, and the most one claim can take; `by` adds rows.

        Tenants get what is free to each of their projects, within its quota; no hosts are named.
        """


class RestFleet(Fleet[Mode]):
    """What callers can do with a fleet over the REST API."""

    @operation(
        Route(
            id="get_about",
            method="GET",
            path="/v1",
            tag="service",
            summary="Describe the service",
            policy=OPEN,
            answers={200: About},
            needs_store=False,
        )
    )
    def about(self) -> About:
        """Return the name and version of the service, the paths of its documentation, and the role of the caller."""
