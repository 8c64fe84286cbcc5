"""Release, renew, shelve and unshelve all claims that match a filter.

A call reads one page and applies the verb for one claim to each of its claims, AT_ONCE at a time. Each verb carries the
token of the listed placement, so it is refused for a claim that has ended or moved since it was listed. One that has
moved comes again, on a later page.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from redsched import aio
from redsched.errors import InvalidRequest, RedschedError, StoreUnavailable
from redsched.model import Claim, ClaimStatus, ListedState, values_of
from redsched.model.filters import ClaimFilter
from redsched.model.limits import check_lease
from redsched.model.records.bulk import BulkOutcome, BulkPage, BulkResult
from redsched.pacing import paced
from redsched.scheduler.cells import Cells, no_such_host
from redsched.scheduler.claims.by_id import find_claim
from redsched.scheduler.claims.claims import ClaimService
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode, ScriptResult
from redsched.store.commands.base import chunks

AT_ONCE = 32
"""The number of claims processed concurrently."""

Verb = Callable[[Claim], Awaitable["BulkOutcome"]]


class BulkService:
    """Verbs for all claims that match a filter. Pass a page's `next` as `after` to the next call."""

    def __init__(self, cells: Cells, claims: ClaimService) -> None:
        self._cells = cells
        self._claims = claims

    async def release(
        self, wanted: ClaimFilter, force: bool = False, dry_run: bool = False, limit: int = 1000, after: str = ""
    ) -> BulkPage:
        """Release up to `limit` matching claims, with all their placements.

        Raises InvalidRequest, NotFound (a cell), Unavailable.
        """
        how = ReleaseMode.FORCE if force else ReleaseMode.ASK

        async def each(claim: Claim) -> BulkOutcome:
            answer = await self._release_whole(claim, how)
            return BulkOutcome.ENDING if answer.outcome is Outcome.ENDING else BulkOutcome.RELEASED

        return await self._on_page(wanted, each, dry_run, limit, after)

    async def renew(
        self, wanted: ClaimFilter, lease_s: int, dry_run: bool = False, limit: int = 1000, after: str = ""
    ) -> BulkPage:
        """Renew the leases of matching claims that are not active yet, for `lease_s`. Otherwise as `release`."""
        check_lease(lease_s)

        async def each(claim: Claim) -> BulkOutcome:
            renewed = await self._claims.renew(claim.claim_id, claim.token, lease_s)
            here = renewed.at(claim.token) or renewed
            return BulkOutcome.RENEWED if here.expires_at_ms else BulkOutcome.UNCHANGED

        return await self._on_page(wanted, each, dry_run, limit, after)

    async def shelve(self, wanted: ClaimFilter, dry_run: bool = False, limit: int = 1000, after: str = "") -> BulkPage:
        """Shelve the matching claims. Otherwise as `release`."""

        async def each(claim: Claim) -> BulkOutcome:
            shelved = await self._claims.shelve(claim.claim_id, claim.token)
            return BulkOutcome.ENDING if shelved.state is ClaimStatus.ENDING else BulkOutcome.SHELVED

        return await self._on_page(wanted, each, dry_run, limit, after)

    async def unshelve(
        self, wanted: ClaimFilter, dry_run: bool = False, limit: int = 1000, after: str = ""
    ) -> BulkPage:
        """Unshelve the matching shelved claims for which there is room now. Otherwise as `release`."""
        wanted.require_any()
        if other := [one for one in values_of(wanted.state) if one != ListedState.SHELVED]:
            raise InvalidRequest(f"only shelved claims can be unshelved: leave out state {', '.join(other)}")

        async def each(claim: Claim) -> BulkOutcome:
            await self._claims.unshelve(claim.claim_id, token=claim.token)
            return BulkOutcome.UNSHELVED

        return await self._on_page(replace(wanted, state=ListedState.SHELVED), each, dry_run, limit, after)

    async def _release_whole(self, claim: Claim, how: ReleaseMode) -> ScriptResult:
        """Release a claim with all its placements: the token of a move's target alone would only cancel the move."""
        answer = await self._claims.give_back(claim.claim_id, claim.token, how)
        if answer.facts[0]:
            return answer
        # Again with a token: by now the id may be that of another claim.
        _, now = await find_claim(self._cells, claim.claim_id)
        return await self._claims.give_back(claim.claim_id, now.token, how) if _is_same(claim, now) else answer

    async def _require_host(self, name: str) -> None:
        """Raise NotFound for an unknown host: otherwise a misspelt name would look like a host without claims."""
        if await self._cells.unknown_hosts([name]):
            raise no_such_host(name)

    async def _on_page(self, wanted: ClaimFilter, verb: Verb, dry_run: bool, limit: int, after: str) -> BulkPage:
        wanted.require_any()
        for host in values_of(wanted.host):
            await self._require_host(host)
        page = await self._claims.page(wanted, limit, after)
        if dry_run:
            return BulkPage(tuple(await _selected(page.items)), page.next)
        found = await _each(verb, page.items)
        # A claim that has moved since the page was read was refused under its old token.
        following = page.next if page.end is None else await self._claims.moved_since(wanted, page.end)
        return BulkPage(tuple(found), following)


def _is_same(one: Claim, other: Claim) -> bool:
    return (one.project, one.claimed_at_ms) == (other.project, other.claimed_at_ms)


async def _selected(claims: Sequence[Claim]) -> list[BulkResult]:
    return [BulkResult.of(one, BulkOutcome.SELECTED) async for one in paced(claims)]


async def _each(verb: Verb, claims: Sequence[Claim]) -> list[BulkResult]:
    found: list[BulkResult] = []
    for batch in chunks(claims, AT_ONCE):
        found += await _batch(verb, batch, _store_error(found))
    return found


async def _batch(verb: Verb, claims: Sequence[Claim], down: StoreUnavailable | None) -> list[BulkResult]:
    """Return a result for each claim. Once the store is `down`, refuse the rest without calling it."""
    if down:
        return [BulkResult.of(claim, BulkOutcome.REFUSED, down) for claim in claims]
    return await aio.gather(_result(verb, claim) for claim in claims)


def _store_error(found: Sequence[BulkResult]) -> StoreUnavailable | None:
    return next((one.problem for one in found[-AT_ONCE:] if isinstance(one.problem, StoreUnavailable)), None)


async def _result(verb: Verb, claim: Claim) -> BulkResult:
    try:
        return BulkResult.of(claim, await verb(claim))
    except RedschedError as error:
        return BulkResult.of(claim, BulkOutcome.REFUSED, error)
