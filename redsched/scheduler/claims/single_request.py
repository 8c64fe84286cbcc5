"""Derive the request for one claim's next place from the request, possibly for many claims, from which it was made."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from redsched.decide.scoring.demand import demand
from redsched.errors import ClaimState, NoValidHost
from redsched.model import Claim, GangMember, Request
from redsched.model.records.problems import ClaimStateFacts
from redsched.scheduler.quotas.usage import by_class


def single_claim_request(request: Request, claim: Claim) -> Request:
    """Return the request for one claim, with its current amounts, because it may have been resized.

    Raises ClaimState if the request cannot be determined.
    """
    fitting = _members(request, claim)
    _refuse_affinity(request, fitting, claim)
    member = fitting[0].request if fitting else request
    whole = replace(member, count=1, mode="all", project=request.project, consumer=request.consumer)
    weighed = replace(whole, policy=request.policy, weights=request.weights, lease_s=request.lease_s)
    # The claim keeps its payload with the request that it was made from.
    return _resized(replace(weighed, max_runtime_s=request.max_runtime_s, payload=None), claim)


def elsewhere(request: Request, hosts: frozenset[str], exclude: frozenset[str]) -> Request:
    """Return the request restricted to `hosts` (empty: all that it allows) without `exclude`. Raises NoValidHost."""
    allowed = (request.hosts & hosts if request.hosts else hosts) if hosts else request.hosts
    if (hosts or request.hosts) and not allowed - exclude:
        raise NoValidHost(_nowhere(request.hosts, hosts))
    return replace(request, hosts=allowed, exclude_hosts=request.exclude_hosts | exclude)


def _nowhere(requested: frozenset[str], hosts: frozenset[str]) -> str:
    """Describe why none of the hosts named by the request or for this placement is left."""
    if requested and hosts and not requested & hosts:
        names = f"the request names only {_some(requested)}, which excludes {_some(hosts)}"
        return f"{names}: claim again, and release this one"
    by = "request names" if requested else "call names"
    return f"the {by} only {_some(requested or hosts)}, and the claim is there or has failed there"


def _some(hosts: frozenset[str]) -> str:
    names = sorted(hosts)
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{', '.join(names[:5])}{more}"


def _members(request: Request, claim: Claim) -> list[GangMember]:
    """Return the gang members that the claim may belong to: several only if their requests are alike.

    Raises ClaimState if that is ambiguous.
    """
    if not request.members:
        return []
    if named := [one for one in request.members if one.name == claim.gang_member]:
        return named
    held = by_class(claim.resizing_to or claim.slots)
    alike = [one for one in request.members if one.request.server_group == claim.server_group]
    fitting = [one for one in alike if +Counter(demand(one.request)) == +held]
    if len({one.request.shape() for one in fitting}) != 1:
        raise ClaimState(
            f"which member of its gang claim {claim.claim_id} belongs to is ambiguous: claim the gang again",
            ClaimStateFacts(claim_id=claim.claim_id),
        )
    return fitting


def _refuse_affinity(request: Request, fitting: Sequence[GangMember], claim: Claim) -> None:
    """Raise ClaimState if the claim was spread with other places, or has relations to claims that it does not name."""
    names, member = {one.name for one in fitting}, fitting[0].request if fitting else request
    related = not claim.gang_member and any(names & set(one.members) for one in request.relations)
    spread = member.count > 1 and not member.server_group and any(one.hard for one in member.spread)
    if related or spread:
        how = "related to" if related else "spread with"
        raise ClaimState(
            f"claim {claim.claim_id} was {how} other places of its request, and cannot be placed alone: claim all of "
            "them again, and release these",
            ClaimStateFacts(claim_id=claim.claim_id),
        )


def _resized(request: Request, claim: Claim) -> Request:
    held, asked = by_class(claim.resizing_to or claim.slots), Counter(demand(request))
    if not held or held == asked:
        return request
    resources = Counter(request.resources)
    for name in held.keys() | asked.keys():
        resources[name] += held[name] - asked[name]
    if min(resources.values()) < 0:
        raise ClaimState(
            f"claim {claim.claim_id} was resized below the groups, NUMA cells or devices of its request: "
            "make a new claim, and release this one",
            ClaimStateFacts(claim_id=claim.claim_id),
        )
    return replace(request, resources=dict(+resources))
