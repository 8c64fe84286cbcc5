"""Claims that a caller may know: those of a tenant's projects, and those placed on an agent's hosts.

To its caller another claim does not exist: the response is that for an unknown id. A verb acts with a token that was
read together with the owner, so that it cannot hit a claim of somebody else that has got the id in between.
"""

from dataclasses import replace

from starlette.requests import Request

from redsched.api.access.callers import caller_of, sees_all_claims
from redsched.api.access.redact import OWN_HOSTS, Redactor
from redsched.auth.caller import Caller
from redsched.errors import Forbidden, StaleToken
from redsched.model import Claim, Token
from redsched.model.role import Role
from redsched.scheduler import Scheduler
from redsched.scheduler.claims.by_id import find_claim, refuse_unknown
from redsched.scheduler.claims.owners import refuse_others

MAX_TRIES = 5
"""How often a claim is read again that is placed again while it is being released."""


def owns(caller: Caller, claim: Claim) -> bool:
    """Return whether a claim is one of the caller's."""
    if sees_all_claims(caller):
        return True
    if caller.role is Role.AGENT:
        return not caller.hosts.isdisjoint({claim.host, *claim.hosts})
    return claim.project in caller.projects


async def require(request: Request, claim_id: str, token: str = "") -> str:
    """Return the token of the caller's claim as read; '' for a caller who may know all claims.

    `token` is the one that the call names. Raises NotFound or Settling, as for an unknown id, if the claim is not the
    caller's to know; Forbidden if it has another owner; and StaleToken if the call's token is newer than all that was
    read: it is of another claim with this id.
    """
    caller = caller_of(request.scope)
    if sees_all_claims(caller):
        return ""
    cells = _scheduler(request).cells
    _, claim = await find_claim(cells, claim_id)
    if not owns(caller, claim) or not _is_own_placement(caller, claim, token):
        await refuse_unknown(cells, claim_id)
    if caller.own_only:
        refuse_others(caller.owner, [claim])
    if token and Token.parse(token) > max(map(Token.parse, _tokens(claim))):
        raise StaleToken(f"the token is not one of claim {claim_id}: read the claim, and use its token")
    hosts = frozenset((claim.host, *claim.hosts))
    request.scope[OWN_HOSTS] = hosts & caller.hosts if caller.role is Role.AGENT else hosts
    return claim.token


async def shown(request: Request, claim: Claim) -> Claim:
    """Return a claim as its caller may see it, without the payload of another owner.

    Raises NotFound or Settling if it is not the caller's to know.
    """
    caller = caller_of(request.scope)
    if sees_all_claims(caller):
        return claim
    if not owns(caller, claim) and not (caller.role is Role.AGENT and OWN_HOSTS in request.scope):
        await refuse_unknown(_scheduler(request).cells, claim.claim_id)
    seen = Redactor(request).claim(claim)
    return replace(seen, payload=None) if caller.own_only and claim.owner not in ("", caller.owner) else seen


async def release(request: Request, claim_id: str, token: str, force: bool) -> bool:
    """Release a claim of the caller's as `ClaimService.release` does, bound to a token that was read with its owner.

    Raises Forbidden if a tenant forces it, and StaleToken if it is placed again all the time.
    """
    caller, claims = caller_of(request.scope), _scheduler(request).claims
    if sees_all_claims(caller):
        return await claims.release(claim_id, token, force=force)
    refuse_force(caller, force)
    known = await require(request, claim_id, token)
    if token:
        return await claims.release(claim_id, token)
    for _ in range(MAX_TRIES - 1):
        try:
            return await claims.release(claim_id, known)
        except StaleToken:
            known = await require(request, claim_id)
    return await claims.release(claim_id, known)


def refuse_force(caller: Caller, force: bool) -> None:
    """Raise Forbidden if a caller who is no operator forces something."""
    if force and caller.role is not Role.OPERATOR:
        raise Forbidden(
            f"{caller.title} has the role {caller.role}, and only an operator may force it, because the host may still "
            "run the work: leave out force"
        )


def _is_own_placement(caller: Caller, claim: Claim, token: str) -> bool:
    """Return whether the placement that a call names, if it is known, is the caller's: an agent's hosts have it."""
    named = claim.at(token) if token else None
    return named is None or caller.role is not Role.AGENT or named.host in caller.hosts


def _tokens(claim: Claim) -> list[str]:
    known = [claim.token, claim.closed, claim.retry_from, *(one.token for one in claim.placements)]
    return [one for one in known if one]


def _scheduler(request: Request) -> Scheduler:
    found: Scheduler = request.app.state.scheduler
    return found
