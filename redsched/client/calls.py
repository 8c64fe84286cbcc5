"""The table of calls: each function returns a `Call`, or the `Pages` of a list. Both clients have them as methods.

Filters take one value or several; '' and () are no filter. Names are checked here, because they become parts of paths.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from redsched.client.exchange import Call, Query
from redsched.client.results import ClaimedPlaces
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.model.validation import check_name
from redsched.schema.responses import (
    AboutAnswer,
    ClaimAnswer,
    ClaimsAnswer,
    EndingAnswer,
    EventAnswer,
    EventsAnswer,
    ExplanationAnswer,
    HostAnswer,
    HostsAnswer,
    QuotaAnswer,
    QuotasAnswer,
    SelectionsAnswer,
    UsageAnswer,
    UsageRowAnswer,
)

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)
Names = str | Iterable[str]

CONFIRM_MARGIN_S = 5
"""How long beyond its lease a placement has to confirm, if a request sets no `confirm_timeout_s`."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list. `next` is the `after` of the next page, None on the last one."""

    items: Sequence[T]
    next: str | None


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A list: the call for its page after a position; '' for the first page."""

    after: Callable[[str], Call[Page[T]]]


def about() -> Call[AboutAnswer]:
    """Return the name and the version of the service."""
    return Call("GET", "/v1", _reader(AboutAnswer))


def select(request: Request, idempotency_key: str = "") -> Call[ClaimedPlaces]:
    """Select and claim. Unless the request names `claim_ids`, they are derived from a key; by default a random one."""
    if not request.claim:
        raise InvalidRequest("the request has claim=False: use dry_run")
    key = idempotency_key or ("" if request.claim_ids else secrets.token_hex(16))
    return Call(
        "POST",
        "/v1/selections",
        _reader(ClaimedPlaces),
        body=request.body(),
        headers={"Idempotency-Key": key} if key else {},
        is_repeatable=True,
        waits_s=_waits_s(request),
    )


def dry_run(request: Request) -> Call[SelectionsAnswer]:
    """Return what a selection would select now, without claiming."""
    body = {**request.body(), "claim": False}
    return Call("POST", "/v1/selections", _reader(SelectionsAnswer), body=body, is_repeatable=True)


def explain(request: Request, hosts: Names = ()) -> Call[ExplanationAnswer]:
    """Explain a selection without writing: why hosts do not fit, with every check of these hosts."""
    query, body = _query(host=hosts), request.body()
    return Call("POST", "/v1/explain", _reader(ExplanationAnswer), query, body, is_repeatable=True)


def get_claim(claim_id: str) -> Call[ClaimAnswer]:
    """Return a claim."""
    return Call("GET", _claim(claim_id), _reader(ClaimAnswer))


def list_claims(
    *,
    host: Names = (),
    project: Names = (),
    consumer: Names = (),
    zone: Names = (),
    state: Names = (),
    cell: Names = (),
    page_size: int = 100,
) -> Pages[ClaimAnswer]:
    """Return the claims that match the filters, a page at a time."""
    query = _query(host=host, project=project, consumer=consumer, zone=zone, state=state, cell=cell, limit=page_size)
    return _pages("/v1/claims", query, ClaimsAnswer, lambda page: page.claims)


def release_claim(claim_id: str, token: str = "", force: bool = False) -> Call[EndingAnswer | None]:
    """Release a claim. Returns None if its amounts are free, else that its host has been asked to stop the work."""
    query = _query(token=token, force="true" if force else "")
    return Call("DELETE", _claim(claim_id), _reader_if_any(EndingAnswer), query)


def confirm_claim(claim_id: str, token: str) -> Call[ClaimAnswer]:
    """Confirm that the work runs."""
    return _verb(claim_id, "confirm", token=token)


def renew_claim(claim_id: str, token: str, lease_s: int = 120) -> Call[ClaimAnswer]:
    """Renew the lease of a claim that is not active yet."""
    return _verb(claim_id, "renew", token=token, lease_s=lease_s)


def fail_claim(claim_id: str, token: str, alternates: Sequence[str] | None = None) -> Call[ClaimAnswer]:
    """Report that the work could not be started. None: try any host on which it has not failed; (): none."""
    given = None if alternates is None else list(alternates)
    return _verb(claim_id, "fail", token=token, alternates=given)


def move_claim(
    claim_id: str,
    token: str,
    hosts: Iterable[str] = (),
    live: bool = False,
    deadline_s: int = 0,
    queue_timeout_s: int = 0,
) -> Call[ClaimAnswer]:
    """Claim another place for a claim, and return it as it is at its target."""
    waits = {"deadline_s": deadline_s, "queue_timeout_s": queue_timeout_s}
    return _verb(claim_id, "move", queue_timeout_s, token=token, hosts=list(hosts), live=live, **waits)


def resize_claim(
    claim_id: str, token: str, resources: Mapping[str, int] | None = None, slots: Mapping[str, int] | None = None
) -> Call[ClaimAnswer]:
    """Set amounts of a claim, by class or by slot. `resizing_to` has amounts while its host has to resize the work."""
    return _verb(claim_id, "resize", token=token, resources=dict(resources or {}), slots=dict(slots or {}))


def shelve_claim(claim_id: str, token: str) -> Call[ClaimAnswer]:
    """Free the amounts of a claim and keep the claim. It is `ending` while its host has to stop the work."""
    return _verb(claim_id, "shelve", token=token)


def unshelve_claim(claim_id: str, queue_timeout_s: int = 0) -> Call[ClaimAnswer]:
    """Place a shelved claim again."""
    return _verb(claim_id, "unshelve", queue_timeout_s, queue_timeout_s=queue_timeout_s)


def list_claim_events(
    claim_id: str, *, kind: Names = (), newest: bool = False, page_size: int = 100
) -> Pages[EventAnswer]:
    """Return the events of a claim; with `newest`, only the last `page_size`."""
    query = _query(kind=kind, newest="true" if newest else "", limit=page_size)
    return _pages(f"{_claim(claim_id)}/events", query, EventsAnswer, lambda page: page.events)


def list_events(
    *,
    claim: Names = (),
    project: Names = (),
    host: Names = (),
    kind: Names = (),
    actor: Names = (),
    request_id: Names = (),
    newest: bool = False,
    after: str = "",
    page_size: int = 100,
) -> Pages[EventAnswer]:
    """Return the events that match the filters, oldest first, or only the last `page_size`. `after`: where to begin."""
    query = [
        *_query(claim=claim, project=project, host=host, kind=kind, actor=actor, request_id=request_id),
        *_query(newest="true" if newest else "", limit=page_size),
    ]
    return _pages("/v1/events", query, EventsAnswer, lambda page: page.events, after)


def get_host(host: str) -> Call[HostAnswer]:
    """Return a host with its slots."""
    return Call("GET", f"/v1/hosts/{quote(check_name('host', host))}", _reader(HostAnswer))


def list_hosts(*, zone: Names = (), status: Names = (), page_size: int = 100) -> Pages[HostAnswer]:
    """Return the hosts that match the filters, sorted by name."""
    query = _query(zone=zone, status=status, limit=page_size)
    return _pages("/v1/hosts", query, HostsAnswer, lambda page: page.hosts)


def get_quota(project: str) -> Call[QuotaAnswer]:
    """Return the quota of a project, and its usage."""
    return Call("GET", f"/v1/quotas/{quote(check_name('project', project))}", _reader(QuotaAnswer))


def list_quotas(*, page_size: int = 100) -> Pages[QuotaAnswer]:
    """Return all quotas, sorted by project."""
    return _pages("/v1/quotas", _query(limit=page_size), QuotasAnswer, lambda page: page.quotas)


def usage(by: Names = "class") -> Call[list[UsageRowAnswer]]:
    """Return the usage of all claims, summed by `class`, `zone` and `project`, as `by` names them."""
    read = _reader(UsageAnswer)
    return Call("GET", "/v1/usage", lambda content: read(content).usage, _query(by=by))


def _reader(model: type[Model]) -> Callable[[bytes], Model]:
    """Return the function that reads a reply. Fields that a newer API has are kept as attributes."""
    return lambda content: model.model_validate_json(content, extra="allow")


def _reader_if_any(model: type[Model]) -> Callable[[bytes], Model | None]:
    read = _reader(model)
    return lambda content: read(content) if content else None


def _pages(
    path: str, query: Query, model: type[Model], items: Callable[[Model], Sequence[T]], first: str = ""
) -> Pages[T]:
    read = _reader(model)

    def page(content: bytes) -> Page[T]:
        found = read(content)
        following: str | None = getattr(found, "next")  # noqa: B009 - every page has it
        return Page(items(found), following)

    def after(position: str) -> Call[Page[T]]:
        return Call("GET", path, page, [*query, *_query(after=position or first)])

    return Pages(after)


def _claim(claim_id: str) -> str:
    return f"/v1/claims/{quote(check_name('claim id', claim_id))}"


def _verb(claim_id: str, verb: str, waits_s: float = 0.0, **body: Any) -> Call[ClaimAnswer]:
    """Return the call of a verb. The token makes each repeatable: its repetition returns the first outcome."""
    path = f"{_claim(claim_id)}/{verb}"
    return Call("POST", path, _reader(ClaimAnswer), body=body, is_repeatable=True, waits_s=waits_s)


def _query(**given: Names | int) -> Query:
    return [(name, one) for name, value in given.items() for one in _values(value) if one]


def _values(value: Names | int) -> Iterable[str]:
    if isinstance(value, int):
        return (str(value),)
    return (value,) if isinstance(value, str) else value


def _waits_s(request: Request) -> float:
    """Return how long the API may take for a selection, beyond an ordinary reply."""
    if request.until != "active":
        return request.queue_timeout_s
    confirming = request.confirm_timeout_s or request.max_attempts * (request.lease_s + CONFIRM_MARGIN_S)
    return request.queue_timeout_s + confirming
