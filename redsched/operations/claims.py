"""The operations on claims: one by one, and on all that match a filter."""

from collections.abc import Collection
from typing import Any

from redsched.auth.policy import OWN_CLAIMS, OWN_PROJECTS, OWN_PROJECTS_OR_DRY_RUNS, READ_OWN_CLAIMS
from redsched.errors import NotConfirmed, NotFound
from redsched.model import AcceptedClaim, Amounts, Claim, OneOf
from redsched.model.filters import ClaimFilter
from redsched.model.records.bulk import BulkPage
from redsched.model.records.pages import CLAIMS, Page
from redsched.model.records.service import Ending
from redsched.operations.operation import Arguments, Mode, Part, Reply, Sent, listing, operation, query, read_record
from redsched.operations.route import OF_PLACING, OF_VERB, Route

CLAIM = "/v1/claims/{claim_id}"


def _verb(word: str, summary: str, body: str, **given: Any) -> Route:
    """Return the route of a verb. The token in its body makes it repeatable: a repetition has the first outcome."""
    how: dict[str, Any] = {"policy": OWN_PROJECTS, "answers": {200: Claim}, "errors": OF_VERB, **given}
    return Route(
        id=f"{word}_claim",
        method="POST",
        path=f"{CLAIM}/{word}",
        tag="claims",
        summary=summary,
        body=body,
        is_repeatable=True,
        **how,
    )


def _bulk(word: str, method: str, path: str, model: str, *, may_end: bool = False) -> Route:
    answers = {200: BulkPage, 202: BulkPage} if may_end else {200: BulkPage}
    return Route(
        id=f"{word}_claims",
        method=method,
        path=path,
        tag="claims",
        summary=f"{word.capitalize()} many claims",
        policy=OWN_PROJECTS_OR_DRY_RUNS,
        answers=answers,
        errors=(NotFound,),
        query=model,
        notes="202: some of them are still ending on their hosts; `watch` lists these." if may_end else "",
        is_repeatable=True,
    )


def _filtered(arguments: Arguments) -> Sent:
    """Return a bulk call: its filter is parameters like the others."""
    (_, wanted), *rest = arguments.items()  # the filter is the first
    return Sent(query=query(**wanted.given, **dict(rest)))


def _is_over(reply: Reply) -> bool:
    if reply.content:
        read_record(Ending, reply.content)
    return not reply.content


class Claims(Part[Mode]):
    """Claims: read them, and the verbs on one."""

    group = "claims"

    @listing(
        Claim,
        Route(
            id="list_claims",
            method="GET",
            path="/v1/claims",
            tag="claims",
            summary="List claims",
            policy=READ_OWN_CLAIMS,
            answers={200: CLAIMS},
            errors=(NotFound,),
            query="ClaimsQuery",
        ),
    )
    def list(
        self,
        host: OneOf = None,
        project: OneOf = None,
        consumer: OneOf = None,
        state: OneOf = None,
        zone: OneOf = None,
        cell: OneOf = None,
        limit: int = 100,
        after: str = "",
        *,
        claimed_before_ms: int = 0,
        claimed_after_ms: int = 0,
        owner: OneOf = None,
    ) -> Page[Claim]:
        """Return a page of claims, sorted by host, then id. Ended claims are not listed."""

    @operation(
        Route(
            id="get_claim",
            method="GET",
            path=CLAIM,
            tag="claims",
            summary="Get a claim",
            policy=READ_OWN_CLAIMS,
            answers={200: Claim},
            errors=(NotFound,),
        )
    )
    def get(self, claim_id: str) -> Claim:
        """Return a claim. Ended claims are kept for a limited time."""

    @operation(_verb("confirm", "Confirm a claim", "TokenBody", policy=OWN_CLAIMS))
    def confirm(self, claim_id: str, token: str) -> Claim:
        """Report that the work runs: the claim becomes active and no longer has a lease."""

    @operation(_verb("renew", "Renew a claim", "RenewBody", policy=OWN_CLAIMS))
    def renew(self, claim_id: str, token: str, lease_s: int = 120) -> Claim:
        """Renew the claim's lease. An active claim has no lease and does not change."""

    @operation(
        _verb(
            "fail",
            "Fail a placement",
            "FailBody",
            policy=OWN_CLAIMS,
            errors=OF_PLACING,
            notes="The response is the claim. 409 `no-valid-host`: no host fits; the placement has ended nevertheless. "
            "If the placement is the target of a move, only the target ends, and the claim stays where it is; with "
            "hosts in `alternates` the response is then 409 `claim-state`.",
        )
    )
    def fail(self, claim_id: str, token: str, alternates: Collection[str] | None = None) -> Claim:
        """Report that the work could not be started: its placement ends, and the next host that still fits takes it.

        `alternates`: the hosts to try; None: any on which it has not failed; (): none, so that it ends.
        """

    @operation(
        _verb(
            "move",
            "Move a claim",
            "MoveBody",
            answers={200: Claim, 202: AcceptedClaim},
            errors=(*OF_PLACING, NotConfirmed),
            status=202,
            notes="202: both places are held until the work runs at the target. 200: the request is a repeat, and the "
            "claim has moved.",
        )
    )
    def move(
        self,
        claim_id: str,
        token: str,
        hosts: Collection[str] = (),
        live: bool = False,
        deadline_s: int = 0,
        queue_timeout_s: int = 0,
    ) -> Claim:
        """Claim a place on another host, and return the claim as it is there. Both are held until the work runs."""

    @operation(
        _verb(
            "resize",
            "Resize a claim",
            "ResizeBody",
            answers={200: Claim, 202: AcceptedClaim},
            errors=OF_PLACING,
            notes="202: its host is running the work and still has to resize it; until then the larger amounts are "
            "held (`resizing_to` has the new ones).",
        )
    )
    def resize(
        self, claim_id: str, token: str, resources: Amounts | None = None, slots: Amounts | None = None
    ) -> Claim:
        """Change the claim's amounts in place, by class or by slot.

        `resizing_to` of the claim has the new amounts while its host still has to resize the work.
        """

    @operation(
        _verb(
            "shelve",
            "Shelve a claim",
            "TokenBody",
            answers={200: Claim, 202: AcceptedClaim},
            notes="202: its host still has to report that the work is gone.",
        )
    )
    def shelve(self, claim_id: str, token: str) -> Claim:
        """Free the claim's amounts and keep the claim. It is `ending` while its host has to stop the work."""

    @operation(
        _verb(
            "unshelve",
            "Unshelve a claim",
            "UnshelveBody",
            answers={201: Claim, 200: Claim},
            errors=(*OF_PLACING, NotConfirmed),
            body_is_optional=True,
            notes="200: the claim was already unshelved.",
        )
    )
    def unshelve(self, claim_id: str, queue_timeout_s: int = 0) -> Claim:
        """Place a shelved claim again, on any host that fits now."""

    @operation(
        Route(
            id="release_claim",
            method="DELETE",
            path=CLAIM,
            tag="claims",
            summary="Release a claim",
            policy=OWN_PROJECTS,
            answers={204: None, 202: Ending},
            errors=OF_VERB,
            query="ReleaseQuery",
            notes="204: its amounts are free. 202: its host still has to report that the work is gone.",
        ),
        reads=_is_over,
    )
    def release(self, claim_id: str, token: str = "", force: bool = False) -> bool:
        """Release a claim. Returns whether its amounts are free; False while its host has to stop the work.

        `force` frees them at once. `token`: only the placement with this token.
        """


class Bulk(Part[Mode]):
    """The verbs on all claims that match a filter, at least one of whose fields is given.

    A call does a page of them. `next` of its result is the `after` of the next call; None at the end.
    """

    group = "bulk"

    @operation(_bulk("release", "DELETE", "/v1/claims", "BulkReleaseQuery", may_end=True), sends=_filtered)
    def release(
        self, wanted: ClaimFilter, force: bool = False, dry_run: bool = False, limit: int = 1000, after: str = ""
    ) -> BulkPage:
        """Release all claims that match the filters, a page at a time. At least one filter is required."""

    @operation(_bulk("renew", "POST", "/v1/claims/renew", "BulkRenewQuery"), sends=_filtered)
    def renew(
        self, wanted: ClaimFilter, lease_s: int, dry_run: bool = False, limit: int = 1000, after: str = ""
    ) -> BulkPage:
        """Renew the leases of all claims that match the filters and are not yet active, a page at a time."""

    @operation(_bulk("shelve", "POST", "/v1/claims/shelve", "BulkQuery", may_end=True), sends=_filtered)
    def shelve(self, wanted: ClaimFilter, dry_run: bool = False, limit: int = 1000, after: str = "") -> BulkPage:
        """Shelve all claims that match the filters, a page at a time."""

    @operation(_bulk("unshelve", "POST", "/v1/claims/unshelve", "BulkQuery"), sends=_filtered)
    def unshelve(self, wanted: ClaimFilter, dry_run: bool = False, limit: int = 1000, after: str = "") -> BulkPage:
        """Place all shelved claims that match the filters again, on any hosts that fit now, a page at a time."""
