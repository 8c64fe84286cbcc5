"""The operations on declared objects: aggregates, server groups, shared pools and quotas."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redsched.auth.policy import OPERATORS, READ, READ_OWN_PROJECTS, RoutePolicy
from redsched.errors import ClaimState, NotFound, OutcomeUnknown, PreconditionFailed
from redsched.model import Aggregate, Quota, ServerGroup, SharedPool
from redsched.model.conditions import IfMatch
from redsched.model.records import pages
from redsched.model.records.declared import AggregateView, QuotaView, ServerGroupView, SharedPoolView
from redsched.model.records.pages import Page, PageOf
from redsched.operations.operation import (
    Arguments,
    Mode,
    Part,
    Reply,
    Sent,
    asks_tag,
    headers_of,
    json_value,
    listing,
    operation,
    read_record,
    tag_of,
)
from redsched.operations.route import Errors, Route

CREATED = 201


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The routes of a kind of declared object. `path`: the plural in the URL; `parameter`: the name in the path."""

    path: str
    singular: str
    view: Any
    page: PageOf[Any]
    body: str
    examples: Mapping[str, Any]
    parameter: str = "name"
    tag: str = "declared"
    policy: RoutePolicy = READ
    """Who may read them."""
    list_errors: Errors = ()
    put_errors: Errors = ()
    in_use: Errors = (ClaimState,)
    """What refuses to delete an object that is in use, unless forced."""

    @property
    def list(self) -> Route:
        """The list of them."""
        plural = self.path.replace("-", "_")
        return Route(
            id=f"list_{plural}",
            method="GET",
            path=f"/v1/{self.path}",
            tag=self.tag,
            summary=f"List {self.path.replace('-', ' ')}",
            policy=self.policy,
            answers={200: self.page},
            errors=self.list_errors,
            query="PageQuery",
        )

    @property
    def get(self) -> Route:
        """One of them."""
        answers = {200: self.view}
        errors: Errors = (NotFound, *self.list_errors)
        return self._of_one("get", "GET", "Get", self.policy, answers, errors, has_etag=True)

    @property
    def put(self) -> Route:
        """What declares one."""
        answers = {200: self.view, CREATED: self.view}
        errors: Errors = (*self.put_errors, OutcomeUnknown, PreconditionFailed)
        return self._of_one(
            "put",
            "PUT",
            "Declare",
            OPERATORS,
            answers,
            errors,
            has_etag=True,
            body=self.body,
            body_may_be_large=True,
            examples=self.examples,
            conditions=("If-Match", "If-None-Match"),
        )

    @property
    def delete(self) -> Route:
        """What deletes one."""
        errors: Errors = (NotFound, *self.in_use, OutcomeUnknown, PreconditionFailed)
        query = "ForgetQuery" if self.in_use else ""
        return self._of_one(
            "delete", "DELETE", "Delete", OPERATORS, {204: None}, errors, query=query, conditions=("If-Match",)
        )

    def _of_one(
        self, word: str, method: str, verb: str, policy: RoutePolicy, answers: Any, errors: Errors, **given: Any
    ) -> Route:
        article = "an" if self.singular[0] in "aeiou" else "a"
        return Route(
            id=f"{word}_{self.singular.replace(' ', '_')}",
            method=method,
            path=f"/v1/{self.path}/{{{self.parameter}}}",
            tag=self.tag,
            summary=f"{verb} {article} {self.singular}",
            policy=policy,
            answers=answers,
            errors=errors,
            **given,
        )

    def sent(self, arguments: Arguments) -> Sent:
        """Return the call that declares an object: its name is in the path, and the rest in the body."""
        given = dict(arguments)
        headers = headers_of(given.pop("if_match"))
        thing = given.pop(self.singular.rpartition(" ")[2])
        body: dict[str, Any] = {**json_value(thing), **given}
        return Sent({self.parameter: body.pop(self.parameter)}, body=body, headers=headers)

    def read(self, reply: Reply) -> tuple[Any, bool]:
        """Return the object that was declared, and whether it is new."""
        return read_record(self.view, reply.content), reply.status_code == CREATED


AGGREGATES = Kind(
    path="aggregates",
    singular="aggregate",
    view=AggregateView,
    page=pages.AGGREGATES,
    body="Aggregate",
    examples={"aggregate": {"metadata": {"ssd": "true", "filter_tenant_id": "web"}, "hosts": ["h17"]}},
    put_errors=(NotFound,),
)
SERVER_GROUPS = Kind(
    path="server-groups",
    singular="server group",
    view=ServerGroupView,
    page=pages.SERVER_GROUPS,
    body="ServerGroup",
    examples={"server_group": {"policy": "anti-affinity", "by": "host", "max_per_host": 1, "count_by": ["label:rack"]}},
    put_errors=(ClaimState,),
)
SHARED_POOLS = Kind(
    path="shared-pools",
    singular="shared pool",
    view=SharedPoolView,
    page=pages.SHARED_POOLS,
    body="SharedPoolBody",
    examples={
        "pool": {
            "inventories": {"CUSTOM_SEAT": {"total": 100}},
            "traits": ["CUSTOM_LICENCE"],
            "aggregates": ["licensed"],
        }
    },
    put_errors=(NotFound, ClaimState),
)
QUOTAS = Kind(
    path="quotas",
    singular="quota",
    view=QuotaView,
    page=pages.QUOTAS,
    body="Quota",
    examples={"quota": {"limits": {"VCPU": 100, "claims": 50}}},
    parameter="project",
    tag="quotas",
    policy=READ_OWN_PROJECTS,
    list_errors=(OutcomeUnknown,),
    put_errors=(ClaimState,),
    in_use=(),
)


class Aggregates(Part[Mode]):
    """Aggregates. `put` returns one as it is then, and whether it is new; `tag` is for its `if_match`."""

    group = "aggregates"

    @listing(AggregateView, AGGREGATES.list)
    def list(self, limit: int = 100, after: str = "") -> Page[AggregateView]:
        """Return a page of aggregates, sorted by name, with their metadata and hosts."""

    @operation(AGGREGATES.get)
    def get(self, name: str) -> AggregateView:
        """Return an aggregate with its metadata and hosts."""

    @operation(AGGREGATES.get, sends=asks_tag, reads=tag_of)
    def tag(self, name: str) -> str:
        """Return the tag of an aggregate, for `if_match`."""

    @operation(AGGREGATES.put, sends=AGGREGATES.sent, reads=AGGREGATES.read)
    def put(self, aggregate: Aggregate, if_match: IfMatch = None) -> tuple[AggregateView, bool]:
        """Declare an aggregate in every cell, replacing its metadata and hosts. 201: it is new. 404: unknown host."""

    @operation(AGGREGATES.delete)
    def delete(self, name: str, force: bool = False, if_match: IfMatch = None) -> None:
        """Delete an aggregate. 409 if it has hosts; `force` removes them from it."""


class ServerGroups(Part[Mode]):
    """Server groups. `put` returns one as it is then, and whether it is new; `tag` is for its `if_match`."""

    group = "server_groups"

    @listing(ServerGroupView, SERVER_GROUPS.list)
    def list(self, limit: int = 100, after: str = "") -> Page[ServerGroupView]:
        """Return a page of server groups, sorted by name, with their counts."""

    @operation(SERVER_GROUPS.get)
    def get(self, name: str) -> ServerGroupView:
        """Return a server group, and its number of members by host, zone and label value."""

    @operation(SERVER_GROUPS.get, sends=asks_tag, reads=tag_of)
    def tag(self, name: str) -> str:
        """Return the tag of a server group, for `if_match`."""

    @operation(SERVER_GROUPS.put, sends=SERVER_GROUPS.sent, reads=SERVER_GROUPS.read)
    def put(self, group: ServerGroup, if_match: IfMatch = None) -> tuple[ServerGroupView, bool]:
        """Declare a server group in every cell. 201: it is new. 409: with members, only `max_per_host` can change."""

    @operation(SERVER_GROUPS.delete)
    def delete(self, name: str, force: bool = False, if_match: IfMatch = None) -> None:
        """Delete a server group. 409 if it has members; with `force` they stay where they are."""


class SharedPools(Part[Mode]):
    """Shared pools. `put` returns one as it is then, and whether it is new; `tag` is for its `if_match`."""

    group = "shared_pools"

    @listing(SharedPoolView, SHARED_POOLS.list)
    def list(self, limit: int = 100, after: str = "") -> Page[SharedPoolView]:
        """Return a page of shared pools, sorted by name, with their claimed and free amounts."""

    @operation(SHARED_POOLS.get)
    def get(self, name: str) -> SharedPoolView:
        """Return a shared pool with its claimed and free amounts."""

    @operation(SHARED_POOLS.get, sends=asks_tag, reads=tag_of)
    def tag(self, name: str) -> str:
        """Return the tag of a shared pool, for `if_match`."""

    @operation(SHARED_POOLS.put, sends=SHARED_POOLS.sent, reads=SHARED_POOLS.read)
    def put(self, pool: SharedPool, cell: str = "c1", if_match: IfMatch = None) -> tuple[SharedPoolView, bool]:
        """Declare a shared pool in one cell. Claimed amounts stay. 201: it is new. 409: taken in another cell."""

    @operation(SHARED_POOLS.delete)
    def delete(self, name: str, force: bool = False, if_match: IfMatch = None) -> None:
        """Delete a shared pool. 409 while any of its amounts are claimed, unless `force`."""


class Quotas(Part[Mode]):
    """Quotas. `put` returns one as it is then, and whether it is new; `tag` is for its `if_match`."""

    group = "quotas"

    @listing(QuotaView, QUOTAS.list)
    def list(self, limit: int = 100, after: str = "") -> Page[QuotaView]:
        """Return a page of quotas, sorted by project, with their usage."""

    @operation(QUOTAS.get)
    def get(self, project: str) -> QuotaView:
        """Return a project's limits, and the usage of its claims over all cells."""

    @operation(QUOTAS.get, sends=asks_tag, reads=tag_of)
    def tag(self, project: str) -> str:
        """Return the tag of a quota, for `if_match`."""

    @operation(QUOTAS.put, sends=QUOTAS.sent, reads=QUOTAS.read)
    def put(self, quota: Quota, if_match: IfMatch = None) -> tuple[QuotaView, bool]:
        """Declare a project's quota, replacing all limits. 201: it is new; existing claims count."""

    @operation(QUOTAS.delete)
    def delete(self, project: str, if_match: IfMatch = None) -> None:
        """Delete a quota. The project then has no limits."""
