"""The operations on hosts."""

from typing import Any

from redsched.auth.policy import OPERATORS, READ, READ_OWN_HOSTS
from redsched.errors import ClaimState, NotFound, OutcomeUnknown, PreconditionFailed, Settling
from redsched.model import Amounts, AtDeadline, OneOf
from redsched.model.conditions import IfMatch
from redsched.model.records.hosts import DrainProgress, HostView
from redsched.model.records.pages import HOSTS, Page
from redsched.model.records.service import Accepted
from redsched.operations.operation import Mode, Part, Reply, asks_tag, listing, operation, read_record, tag_of
from redsched.operations.route import Route

HOST = "/v1/hosts/{host}"
GET = Route(
    id="get_host",
    method="GET",
    path=HOST,
    tag="hosts",
    summary="Get a host",
    policy=READ_OWN_HOSTS,
    answers={200: HostView},
    errors=(NotFound, ClaimState),
    query="HostQuery",
    has_etag=True,
)
OF_WORD = (NotFound, ClaimState, Settling, OutcomeUnknown, PreconditionFailed)


def _word(id: str, method: str, path: str, summary: str, **given: Any) -> Route:  # noqa: A002 - as the field is named
    """Return the route of what an operator does with a host. It sets a state, so it can be repeated."""
    how: dict[str, Any] = {"answers": {204: None}, "query": "HostQuery", "in_query": ("cell",), **given}
    return Route(
        id=id,
        method=method,
        path=path,
        tag="hosts",
        summary=summary,
        policy=OPERATORS,
        errors=OF_WORD,
        conditions=("If-Match",),
        is_repeatable=True,
        **how,
    )


def _nothing(reply: Reply) -> None:
    if reply.content:
        read_record(Accepted, reply.content)


class Hosts(Part[Mode]):
    """Hosts: read them, and what operators do with them.

    `cell` is needed only if two cells have a host with the same name.
    """

    group = "hosts"

    @listing(
        HostView,
        Route(
            id="list_hosts",
            method="GET",
            path="/v1/hosts",
            tag="hosts",
            summary="List hosts",
            policy=READ,
            answers={200: HOSTS},
            query="HostsQuery",
        ),
    )
    def list(
        self,
        zone: OneOf = None,
        status: OneOf = None,
        limit: int = 100,
        after: str = "",
        *,
        trait: OneOf = None,
        aggregate: OneOf = None,
        label: OneOf = None,
        fits: Amounts | None = None,
    ) -> Page[HostView]:
        """Return a page of hosts, sorted by name, with free, claimed and external amounts and capacity per slot."""

    @operation(GET)
    def get(self, host: str, cell: str = "") -> HostView:
        """Return a host with the free, claimed and external amounts and the capacity of each slot."""

    @operation(
        Route(
            id="get_drain",
            method="GET",
            path=f"{HOST}/drain",
            tag="hosts",
            summary="Get a drain's progress",
            policy=READ_OWN_HOSTS,
            answers={200: DrainProgress},
            errors=(NotFound, ClaimState),
            query="HostQuery",
        )
    )
    def drain_progress(self, host: str, cell: str = "") -> DrainProgress:
        """Return the progress of a drain with `move` or an evacuation: the remaining claims, and why some cannot go."""

    @operation(GET, sends=asks_tag, reads=tag_of)
    def tag(self, host: str, cell: str = "") -> str:
        """Return the tag of what operators have set on a host, for `if_match`."""

    @operation(_word("enable_host", "POST", f"{HOST}/enable", "Enable a host"), reads=_nothing)
    def enable(self, host: str, cell: str = "", if_match: IfMatch = None) -> None:
        """Allow new claims on a host again."""

    @operation(
        _word("disable_host", "POST", f"{HOST}/disable", "Disable a host", body="DisableBody", body_is_optional=True),
        reads=_nothing,
    )
    def disable(
        self, host: str, reason: str = "", ahead: bool = False, cell: str = "", if_match: IfMatch = None
    ) -> None:
        """Stop new claims on a host. Its existing claims stay. With `ahead`, also before its first report."""

    @operation(
        _word(
            "drain_host",
            "POST",
            f"{HOST}/drain",
            "Drain a host",
            answers={204: None, 202: Accepted},
            body="DrainBody",
            body_is_optional=True,
            notes="202 with `move`: watch `GET` of the same path.",
        ),
        reads=_nothing,
    )
    def drain(
        self,
        host: str,
        move: bool = False,
        deadline_s: int = 0,
        then: AtDeadline | None = None,
        reason: str = "",
        cell: str = "",
        if_match: IfMatch = None,
    ) -> None:
        """Stop new claims on a host and empty it. With `move`, its claims are moved to other hosts, a few each second.

        `deadline_s` limits the time for moves; then the remaining claims are released (`then: stop`) or stay
        (`then: keep`).
        """

    @operation(
        _word(
            "write_off_host",
            "POST",
            f"{HOST}/write-off",
            "Write off a host",
            answers={204: None, 202: Accepted},
            body="LostBody",
            body_is_optional=True,
            notes="202 with `evacuate`: watch `GET /v1/hosts/{host}/drain`.",
        ),
        reads=_nothing,
    )
    def write_off(
        self,
        host: str,
        evacuate: bool = False,
        force: bool = False,
        reason: str = "",
        cell: str = "",
        if_match: IfMatch = None,
    ) -> None:
        """Declare a host dead, so that schedulers stop waiting for it. Releasing its claims then frees them at once.

        With `evacuate`, its claims are placed on other hosts, one by one; if the host returns, it drops them. 409 while
        the host's lease is valid, unless `force`.
        """

    @operation(_word("remove_host", "DELETE", HOST, "Remove a host", query="RemoveHostQuery"), reads=_nothing)
    def remove(self, host: str, force: bool = False, cell: str = "", if_match: IfMatch = None) -> None:
        """Remove a host, and free its name. 409 while it holds claims or its lease is valid, unless `force`."""
