"""Read claims, and operate on one: confirm, renew, resize, shelve, release.

The verbs that place it again (fail, move, unshelve) are in migration.py, those on many claims in bulk.py.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from redsched.errors import InvalidRequest, NotFound, RedschedError
from redsched.model import Amounts, Claim, ClaimStatus, EndReason, OneOf, Token, values_of
from redsched.model.filters import ME, ClaimFilter
from redsched.model.limits import MAX_DEADLINE_S, check_lease, check_limit, check_range, check_wait
from redsched.model.records.pages import Page
from redsched.model.reserved_for import ReservedFor
from redsched.model.validation import split_slot
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claims.by_id import find_claim, find_claims, release_elsewhere, void_unknown
from redsched.scheduler.claims.cursor import Cursor, parse_cursor
from redsched.scheduler.claims.listing import with_host_conditions, with_reasons
from redsched.scheduler.claims.moved import marks_of, pass_after, walk_pass
from redsched.scheduler.claims.outcomes import check_outcome
from redsched.scheduler.claims.resize import KEPT, absolute, resize_refusal
from redsched.scheduler.quotas.enforcement import Quotas
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode, ScriptResult

if TYPE_CHECKING:
    from redsched.scheduler.claims.migration import MigrationService

Unmovable = Callable[[Cell, Sequence[Claim]], Awaitable[dict[str, str]]]


@dataclass(frozen=True, slots=True)
class ClaimPage(Page[Claim]):
    """A page of claims, and on the last one where the list has come to its end."""

    end: Cursor | None = None


class ClaimService:
    """Claims over all cells of a scheduler. A token names one placement of a claim.

    Reads go to the store, not to memory.
    """

    def __init__(
        self, cells: Cells, quotas: Quotas, unmovable: Unmovable, migrations: "Callable[[], MigrationService]"
    ) -> None:
        """`unmovable` returns, by id, the claims that have to leave their hosts and have no other place now.

        `migrations` returns the verbs that place a claim again, which load what decides.
        """
        self._cells = cells
        self._quotas = quotas
        self._unmovable = unmovable
        self._migrations = migrations

    async def get(self, claim_id: str) -> Claim:
        """Return a claim, also an ended one that the store still remembers. Raises NotFound, Settling."""
        cell, claim = await find_claim(self._cells, claim_id)
        decision, payload = await cell.store.texts.decision_and_payload(claim)
        claim = replace(claim, decision=decision, payload=payload)
        if claim.state is ClaimStatus.PENDING:
            claim = replace(claim, next_attempt_at_ms=await cell.store.due.reconcile_at_ms(claim.claim_id))
        (claim,) = await with_reasons(cell, await with_host_conditions(cell, [claim]))
        return replace(claim, unmovable=await self._why_not_moved(cell, claim)) if claim.waits_to_leave else claim

    async def _why_not_moved(self, cell: Cell, claim: Claim) -> str:
        try:
            return (await self._unmovable(cell, [claim])).get(claim.claim_id, "")
        except RedschedError:  # a claim can be read while nothing can be decided, as in a cell that is not settled
            return ""

    async def list(
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
        """Return claims ordered by host and id. Claims on no host come first: pending, and shelved ones if requested.

        Each filter takes one value, or several of which any may match. `after` is the `next` of the previous page. A
        claim that moves meanwhile comes at its new place in the end, maybe for the second time: none is left out.
        Raises InvalidRequest, and NotFound for a cell that is not one of this scheduler's.
        """
        ages = claimed_before_ms, claimed_after_ms
        return await self.matching(ClaimFilter(host, project, consumer, state, zone, cell, *ages, owner), limit, after)

    async def matching(self, wanted: ClaimFilter, limit: int, after: str) -> Page[Claim]:
        """Return the claims that match a filter as `list` does."""
        page = await self.page(wanted, limit, after)
        by_id: dict[str, Claim] = {}
        for one in self._cells:
            here = await with_host_conditions(one, [claim for claim in page.items if claim.cell == one.name])
            claims = await with_reasons(one, here)
            by_id.update((claim.claim_id, claim) for claim in claims)
        return Page(tuple(by_id[claim.claim_id] for claim in page.items), page.next)

    async def page(self, wanted: ClaimFilter, limit: int, after: str) -> "ClaimPage":
        """Return the next page of matching claims as `list` does, without their reasons."""
        check_limit(limit)
        if ME in values_of(wanted.owner):
            raise InvalidRequest(
                f"the owner {ME} is who calls the REST API with a token, and nobody is known here: name the owner"
            )
        cells = _listed(self._cells, wanted)
        given = parse_cursor(after) if after else None
        await self._cells.catch_up()
        at: Cursor | None = given or Cursor(1, marks_of(cells))
        found: dict[tuple[str, str], Claim] = {}
        while at is not None:
            end = at
            async with aclosing(walk_pass(cells, wanted, at)) as walk:
                async for place, claim in walk:
                    if len(found) == limit:
                        return ClaimPage(tuple(found.values()), str(end))
                    key = (claim.claim_id, claim.host if wanted.host else "")
                    found.pop(key, None)  # it has moved since it was read: at its new place
                    found[key] = claim
                    end = replace(end, place=place)
            await self._cells.catch_up()
            at = pass_after(cells, end)
        return ClaimPage(tuple(found.values()), end=end)

    async def moved_since(self, wanted: ClaimFilter, end: Cursor) -> str | None:
        """Return the `next` for the matching claims that have moved since a list ended; None if there are none."""
        await self._cells.catch_up()
        following = pass_after(_listed(self._cells, wanted), end)
        if following is None or not (await self.page(wanted, 1, str(following))).items:
            return None
        return str(following)

    async def confirm(self, claim_id: str, token: str) -> Claim:
        """Confirm that the work runs: the claim becomes active. Raises NotFound, ClaimState, StaleToken, Settling."""
        cell, claim = await self._find(claim_id, token)
        check_outcome(claim, await cell.store.claims.confirm(claim.host, claim.claim_id, token))
        return await self.get(claim.claim_id)

    async def renew(self, claim_id: str, token: str, lease_s: int = 120) -> Claim:
        """Renew the lease of a claim that is not active yet, for `lease_s` from now.

        Raises InvalidRequest (`lease_s`), NotFound, ClaimState, StaleToken, Settling.
        """
        check_lease(lease_s)
        cell, claim = await self._find(claim_id, token)
        check_outcome(claim, await cell.store.claims.renew(claim.host, claim.claim_id, token, lease_s))
        return await self.get(claim.claim_id)

    async def fail(self, claim_id: str, token: str, alternates: Collection[str] | None = None) -> Claim:
        """Report that the work could not be started: end the placement, and place the claim on the next host that fits.

        `alternates` are the hosts to try; None tries those chosen with its first host, then any host on which it has
        not failed; an empty collection ends the claim. If the placement is the target of a move, only the target ends,
        and the claim stays where it is; `alternates` with hosts are refused then. Returns the claim at its place.
        Raises NoValidHost or QuotaExceeded (the claim has ended in both cases), ClaimState, StaleToken, NotFound,
        Settling.
        """
        return await self._migrations().fail(claim_id, token, alternates)

    async def move(
        self,
        claim_id: str,
        token: str,
        hosts: Collection[str] = (),
        live: bool = False,
        deadline_s: int = 0,
        queue_timeout_s: int = 0,
    ) -> Claim:
        """Move a claim to another place. It holds the source until the target is active; then the source is released.

        `hosts` restricts the targets; the current host is one only if named, for a move to other pools of it. A live
        move has a deadline (300 s by default), after which the target is released; with `queue_timeout_s`, the call
        waits for room. Returns the claim at its target; repeated, at the target of the first call. Raises NoValidHost,
        ClaimState, StaleToken, NotFound, Settling.
        """
        check_range("deadline_s", deadline_s, 0, MAX_DEADLINE_S)
        check_wait(queue_timeout_s)
        return await self._migrations().move(claim_id, token, hosts, live, deadline_s, queue_timeout_s)

    async def unshelve(self, claim_id: str, queue_timeout_s: int = 0, token: str = "") -> Claim:
        """Place a shelved claim again, and return it.

        `token`: only if its last placement has this token; '' for any. Raises NoValidHost, ClaimState (it is not
        shelved), StaleToken, NotFound, Settling.
        """
        check_wait(queue_timeout_s)
        return (await self._migrations().unshelve(claim_id, queue_timeout_s, token))[0]

    async def resize(
        self, claim_id: str, token: str, resources: Amounts | None = None, slots: Amounts | None = None
    ) -> Claim:
        """Set amounts of a claim, by class or by slot. Amounts not named stay as they are; 0 removes an amount.

        A claim that its host has accepted gets a new token at once, and holds the larger of the old and the new amounts
        until the host has resized the work. Raises NoValidHost (facts: `slot`, `asked`, the `rule` that refuses it with
        its `value`, and the `next` amounts), QuotaExceeded, InvalidRequest, NotFound, ClaimState, StaleToken, Settling.
        """
        cell, claim = await self._find(claim_id, token)
        amounts = absolute(claim, slots or {}, resources or {})
        answer = await self._quotas.resize(cell, claim, token, amounts)
        if answer.outcome is Outcome.FULL:
            slot, rule = answer.facts[:2]
            kept = await self._kept_on(cell, claim.host, slot) if rule == KEPT else None
            raise resize_refusal(claim, amounts, answer.facts, kept)
        check_outcome(claim, answer)
        return await self.get(claim.claim_id)

    async def _kept_on(self, cell: Cell, host: str, slot: str) -> ReservedFor | None:
        """Return what a host keeps of the class of a slot for a request that waits, as far as this scheduler knows."""
        await self._cells.catch_up()  # the script has refused by what may be newer than the replica
        columns = cell.updater.columns
        row = columns.row(host)
        return None if row is None else columns.reserved.for_request(row, (split_slot(slot)[1],))

    async def shelve(self, claim_id: str, token: str) -> Claim:
        """Release the claim's place and keep its request, so that `unshelve` can place it again.

        A claim that its host has accepted is ending first, until the host has stopped the work.
        Raises NotFound, ClaimState, StaleToken, Settling.
        """
        cell, claim, others = await self._find_all(claim_id, token)
        answer = await cell.store.claims.shelve(claim.host, claim.claim_id, token, counted_by(claim))
        check_outcome(claim, answer, ending=True)
        cell.released.note(claim.claim_id, answer, EndReason.SHELVED)
        await release_elsewhere(self._cells, claim, cell, others)
        return await self.get(claim.claim_id)

    async def release(self, claim_id: str, token: str = "", force: bool = False) -> bool:
        """Release a claim. Returns True if it has ended, False if its host was asked to stop the work.

        Releasing an unknown id tombstones it, so that a returning host cannot restore the claim from its journal.
        Raises NotFound, StaleToken, Settling.
        """
        answer = await self.give_back(claim_id, token, ReleaseMode.FORCE if force else ReleaseMode.ASK)
        return answer.outcome is not Outcome.ENDING

    async def give_back(self, claim_id: str, token: str, how: ReleaseMode) -> ScriptResult:
        """Release a claim, or tombstone an unknown id in all cells. Raises as `release` does."""
        try:
            return await self._release(claim_id, token, how)
        except NotFound:
            if not await void_unknown(claim_id, self._cells):
                raise
            return await self._release(claim_id, token, how)

    async def _release(self, claim_id: str, token: str, how: ReleaseMode) -> ScriptResult:
        cell, claim, others = await self._find_all(claim_id, token)
        answer = await cell.store.claims.release(claim.host, claim.claim_id, token, how, counted_by(claim))
        check_outcome(claim, answer, ending=True)
        if answer.facts[0]:
            cell.released.note(claim.claim_id, answer, how=how)
            await release_elsewhere(self._cells, claim, cell, others, shelved=True)
        return answer

    async def _find(self, claim_id: str, token: str) -> tuple[Cell, Claim]:
        """Return the claim at the placement that the token names, else at its main placement. Raises NotFound."""
        cell, claim, _ = await self._find_all(claim_id, token)
        return cell, claim

    async def _find_all(self, claim_id: str, token: str) -> tuple[Cell, Claim, Sequence[tuple[Cell, Claim]]]:
        """Return what `_find` returns, and the claims with this id in other cells. Raises NotFound."""
        if token:
            Token.parse(token)
        (cell, claim), *others = await find_claims(self._cells, claim_id)
        return cell, (claim.at(token) if token else None) or claim, others


def _listed(cells: Cells, wanted: ClaimFilter) -> list[Cell]:
    return [cells.named(name) for name in values_of(wanted.cell)] or list(cells)
