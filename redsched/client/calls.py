"""The table of calls: each function returns a `Call`, or the `Pages` of a list. Both clients have them as methods.

Filters take one value or several; '' and () are no filter. Names are checked here, because they become parts of paths.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from redsched.client.call_parts import (
    Asked,
    Names,
    Pages,
    listed,
    pages,
    path_of,
    query,
    reader,
    reader_if_any,
    request_of,
)
from redsched.client.exchange import Call
from redsched.client.results import Event, EventPage
from redsched.errors import InvalidRequest
from redsched.model import Claim, Request
from redsched.model.records.declared import QuotaView, Usage, UsageRow
from redsched.model.records.explanations import Explanation
from redsched.model.records.hosts import HostView
from redsched.model.records.selections import ClaimedPlaces, Selections
from redsched.schema.pages import CLAIMS, HOSTS, QUOTAS
from redsched.schema.responses import (
    AboutAnswer,
    EndingAnswer,
)

CONFIRM_MARGIN_S = 5
"""How long beyond its lease a placement has to confirm, if a request sets no `confirm_timeout_s`."""


def about() -> Call[AboutAnswer]:
    """Return the name and the version of the service."""
    return Call("GET", "/v1", reader(AboutAnswer))


def select(request: Asked, idempotency_key: str = "", **fields: Any) -> Call[ClaimedPlaces]:
    """Select hosts for a request and claim its places: `select({"VCPU": 2}, project="web", until="active")`.

    The request is a `Request`, or its amounts by class; `fields` set further fields of a `Request`, or others than it
    has. Unless it names `claim_ids`, they are derived from a key, by default a random one.
    """
    asked = request_of(request, fields)
    if not asked.claim:
        raise InvalidRequest("the request has claim=False: use dry_run")
    key = idempotency_key or ("" if asked.claim_ids else secrets.token_hex(16))
    return Call(
        "POST",
        "/v1/selections",
        reader(ClaimedPlaces),
        body=asked.body(),
        headers={"Idempotency-Key": key} if key else {},
        is_repeatable=True,
        waits_s=_waits_s(asked),
    )


def dry_run(request: Asked, **fields: Any) -> Call[Selections]:
    """Return what `select` would select now, without claiming. The arguments are those of `select`."""
    body = {**request_of(request, fields).body(), "claim": False}
    return Call("POST", "/v1/selections", reader(Selections), body=body, is_repeatable=True)


def explain(request: Asked, hosts: Names = (), **fields: Any) -> Call[Explanation]:
    """Explain a selection without writing: why hosts do not fit, with every check of these hosts.

    The request is given as to `select`.
    """
    body = request_of(request, fields).body()
    return Call("POST", "/v1/explain", reader(Explanation), query(host=hosts), body, is_repeatable=True)


def get_claim(claim_id: str) -> Call[Claim]:
    """Return a claim."""
    return Call("GET", path_of("claims", claim_id), reader(Claim))


def list_claims(
    *,
    host: Names = (),
    project: Names = (),
    consumer: Names = (),
    zone: Names = (),
    state: Names = (),
    cell: Names = (),
    owner: Names = (),
    claimed_before_ms: int = 0,
    claimed_after_ms: int = 0,
    page_size: int = 100,
    after: str = "",
) -> Pages[Claim]:
    """Return the claims that match the filters, a page at a time. Times are in Unix ms. `after`: where to begin.

    The owner `@me` is the caller.
    """
    filters = [
        *query(host=host, project=project, consumer=consumer, zone=zone, state=state, cell=cell, owner=owner),
        *query(limit=page_size),
        *query(claimed_before_ms=claimed_before_ms or "", claimed_after_ms=claimed_after_ms or ""),
    ]
    return listed("/v1/claims", filters, CLAIMS, after)


def release_claim(claim_id: str, token: str = "", force: bool = False) -> Call[EndingAnswer | None]:
    """Release a claim. Returns None if its amounts are free, else that its host has been asked to stop the work."""
    return Call("DELETE", path_of("claims", claim_id), reader_if_any(EndingAnswer), query(token=token, force=force))


def confirm_claim(claim_id: str, token: str) -> Call[Claim]:
    """Confirm that the work runs."""
    return _verb(claim_id, "confirm", token=token)


def renew_claim(claim_id: str, token: str, lease_s: int = 120) -> Call[Claim]:
    """Renew the lease of a claim that is not active yet."""
    return _verb(claim_id, "renew", token=token, lease_s=lease_s)


def fail_claim(claim_id: str, token: str, alternates: Sequence[str] | None = None) -> Call[Claim]:
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
) -> Call[Claim]:
    """Claim another place for a claim, and return it as it is at its target."""
    waits = {"deadline_s": deadline_s, "queue_timeout_s": queue_timeout_s}
    return _verb(claim_id, "move", queue_timeout_s, token=token, hosts=list(hosts), live=live, **waits)


def resize_claim(
    claim_id: str, token: str, resources: Mapping[str, int] | None = None, slots: Mapping[str, int] | None = None
) -> Call[Claim]:
    """Set amounts of a claim, by class or by slot. `resizing_to` has amounts while its host has to resize the work."""
    return _verb(claim_id, "resize", token=token, resources=dict(resources or {}), slots=dict(slots or {}))


def shelve_claim(claim_id: str, token: str) -> Call[Claim]:
    """Free the amounts of a claim and keep the claim. It is `ending` while its host has to stop the work."""
    return _verb(claim_id, "shelve", token=token)


def unshelve_claim(claim_id: str, queue_timeout_s: int = 0) -> Call[Claim]:
    """Place a shelved claim again."""
    return _verb(claim_id, "unshelve", queue_timeout_s, queue_timeout_s=queue_timeout_s)


def list_claim_events(claim_id: str, *, kind: Names = (), newest: bool = False, page_size: int = 100) -> Pages[Event]:
    """Return the events of a claim; with `newest`, only the last `page_size`."""
    filters = query(kind=kind, newest=newest, limit=page_size)
    return pages(f"{path_of('claims', claim_id)}/events", filters, EventPage, lambda page: page.events)


def list_events(
    *,
    claim: Names = (),
    project: Names = (),
    host: Names = (),
    kind: Names = (),
    actor: Names = (),
    request_id: Names = (),
    since_ms: int = 0,
    before_ms: int = 0,
    newest: bool = False,
    after: str = "",
    page_size: int = 100,
) -> Pages[Event]:
    """Return the events that match the filters, oldest first, or only the last `page_size`. `after`: where to begin.

    `since_ms` and `before_ms` (Unix ms): when they happened.
    """
    filters = [
        *query(claim=claim, project=project, host=host, kind=kind, actor=actor, request_id=request_id),
        *query(since_ms=since_ms, before_ms=before_ms, newest=newest, limit=page_size),
    ]
    return pages("/v1/events", filters, EventPage, lambda page: page.events, after)


def get_host(host: str, cell: str = "") -> Call[HostView]:
    """Return a host with its slots. `cell`: needed only if two cells have a host with this name."""
    return Call("GET", path_of("hosts", host), reader(HostView), query(cell=cell))


def list_hosts(
    *,
    zone: Names = (),
    status: Names = (),
    trait: Names = (),
    aggregate: Names = (),
    label: Names = (),
    fits: Mapping[str, int] | None = None,
    page_size: int = 100,
    after: str = "",
) -> Pages[HostView]:
    """Return the hosts that match the filters, sorted by name. A label is `KEY=VALUE`. `after`: where to begin.

    `fits`: amounts by class that a host could give to one more claim now.
    """
    amounts = [f"{name}={amount}" for name, amount in (fits or {}).items()]
    filters = query(
        zone=zone, status=status, trait=trait, aggregate=aggregate, label=label, fits=amounts, limit=page_size
    )
    return listed("/v1/hosts", filters, HOSTS, after)


def get_quota(project: str) -> Call[QuotaView]:
    """Return the quota of a project, and its usage."""
    return Call("GET", path_of("quotas", project), reader(QuotaView))


def list_quotas(*, page_size: int = 100, after: str = "") -> Pages[QuotaView]:
    """Return all quotas, sorted by project. `after`: where to begin."""
    return listed("/v1/quotas", query(limit=page_size), QUOTAS, after)


def usage(by: Names = "class") -> Call[tuple[UsageRow, ...]]:
    """Return the usage of all claims, summed by `class`, `zone` and `project`, as `by` names them."""
    read = reader(Usage)
    return Call("GET", "/v1/usage", lambda content: read(content).usage, query(by=by))


def _verb(claim_id: str, verb: str, waits_s: float = 0.0, **body: Any) -> Call[Claim]:
    """Return the call of a verb. The token makes each repeatable: its repetition returns the first outcome."""
    path = f"{path_of('claims', claim_id)}/{verb}"
    return Call("POST", path, reader(Claim), body=body, is_repeatable=True, waits_s=waits_s)


def _waits_s(request: Request) -> float:
    """Return how long the API may take for a selection, beyond an ordinary reply."""
    if request.until != "active":
        return request.queue_timeout_s
    confirming = request.confirm_timeout_s or request.max_attempts * (request.lease_s + CONFIRM_MARGIN_S)
    return request.queue_timeout_s + confirming
