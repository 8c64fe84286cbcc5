"""Build the call of the claim script from a decision, and the selections from its reply."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from redsched.decide.result import Decision, Place
from redsched.model import Claim, GangOnExit, Request
from redsched.model.records.selections import Selection, Selections
from redsched.scheduler.cells import Cell
from redsched.store.codec.claim_fields import carried_by
from redsched.store.codec.replies import ClaimCall, ClaimReply, Member, Replacement

NO_GANG: Mapping[str, tuple[str, ...]] = {}
ANY_RESERVATION = "*"
"""Instead of the id of a reservation: the call may use what is kept for any request."""
EQUAL_PLACES = "places"
"""The name of the member of a gang that consists of equal places."""


def claim_call(
    request: Request,
    cell: Cell,
    decision: Decision,
    ids: Sequence[str],
    epoch: str,
    seen_seq: int,
    call_id: str = "",
    members_by_name: Mapping[str, tuple[str, ...]] = NO_GANG,
    reservation: str = "",
    owner: str = "",
    own_only: bool = False,
) -> ClaimCall:
    """Return the call that claims a decision's places under these ids.

    `epoch` and `seen_seq` are those of the columns decided on. Without places, the script only looks up the ids.
    `call_id` identifies a call that may have to be undone; `members_by_name` is the result of `gang_members`;
    `reservation`, `owner` and `own_only` are the attempt's.
    """
    places = decision.places or (Place(()),) * len(ids)
    pairs = zip(ids, places, strict=True)
    members = tuple([Member(claim_id, one.candidates, one.group, decision=one.note) for claim_id, one in pairs])
    digest = request.digest()
    is_gang = request.mode == "all" and request.places > 1
    return ClaimCall(
        members=members,
        epoch=epoch,
        now_ms=cell.updater.now_ms(),
        seen_seq=seen_seq,
        digest=digest,
        fresh=not request.claim_ids,
        lease_ms=request.lease_s * 1000,
        project=request.project,
        carried=carried_by(
            request, gang_members=members_by_name, gang_on_exit=request.gang_on_exit if is_gang else GangOnExit.KEEP
        ),
        owner=owner,
        own_only=own_only,
        rules=decision.rules,
        limits=cell.decider.limits(decision.places),
        request=cell.requests.to_write(request, digest, epoch),
        is_gang=is_gang,
        max_runtime_s=request.max_runtime_s,
        alternates=decision.alternates,
        most_alternates=request.alternates,
        call_id=call_id,
        reservation=reservation,
    )


def gang_members(request: Request, decision: Decision, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the claim ids of each gang member, if the members still matter to each other once all are active.

    They do by relations, and by `gang_on_exit`. Otherwise an empty dict.
    """
    members: dict[str, tuple[str, ...]] = {}
    is_kept = bool(request.relations) or (request.places > 1 and request.gang_on_exit is not GangOnExit.KEEP)
    for place, claim_id in zip(decision.places, ids, strict=False) if is_kept else ():
        name = place.member or EQUAL_PLACES
        members[name] = (*members.get(name, ()), claim_id)
    return members


def replacement_call(
    request: Request,
    cell: Cell,
    decision: Decision,
    claim_id: str,
    replacement: Replacement,
    written_off: tuple[str, ...],
    epoch: str,
    seen_seq: int,
    expected: Mapping[str, tuple[str, ...]],
    reservation: str = "",
) -> ClaimCall:
    """Return the call that gives a claim of this request another placement, at the decision's only place."""
    call = claim_call(request, cell, decision, (claim_id,), epoch, seen_seq, reservation=reservation)
    member = replace(call.members[0], replacement=replacement)
    return replace(
        call,
        members=(member,),
        fresh=True,
        written_off=written_off,
        expected=expected,
        alternates=(),
        most_alternates=0,
    )


def dry_run(request: Request, cell: Cell, decision: Decision) -> Selections:
    """Return the selections that claiming the decision's places would give, without ids, tokens and leases."""
    alternates = _alternates(request, decision, [place.chosen.host for place in decision.places])
    places = (
        Selection(None, None, cell.name, place.chosen.host, place.chosen.amounts, None, None, alternates, place.member)
        for place in decision.places
    )
    return Selections(tuple(places))


def from_reply(request: Request, cell: Cell, decision: Decision, ids: Sequence[str], answer: ClaimReply) -> Selections:
    """Return the selections just claimed."""
    alternates = _alternates(request, decision, [one.host for one in answer.placed])
    selections = (
        Selection(
            claim_id,
            one.state,
            cell.name,
            one.host,
            place.candidates[one.candidate or 0].amounts,
            one.token,
            one.expires_at_ms,
            alternates,
            place.member,
        )
        for claim_id, place, one in zip(ids, decision.places, answer.placed, strict=True)
    )
    return Selections(tuple(selections))


def from_existing(request: Request, cell: Cell, ids: Sequence[str], claims: Mapping[str, Claim]) -> Selections:
    """Return the first outcome of ids that were sent before, as stored."""
    members = [one.name for one in request.members for _ in range(one.count)] or [""] * len(ids)
    selections = (
        Selection(
            claim_id,
            claims[claim_id].state,
            cell.name,
            claims[claim_id].host,
            claims[claim_id].slots,
            claims[claim_id].token,
            claims[claim_id].expires_at_ms,
            claims[claim_id].alternates,
            member,
        )
        for claim_id, member in zip(ids, members, strict=True)
        if claim_id in claims
    )
    return Selections(tuple(selections), fresh=not request.claim_ids)


def _alternates(request: Request, decision: Decision, chosen: Sequence[str]) -> tuple[str, ...]:
    if not decision.alternates:
        return ()
    return tuple(host for host in decision.alternates if host not in chosen)[: request.alternates]
