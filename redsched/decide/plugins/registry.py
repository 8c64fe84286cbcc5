"""What requests are decided with: filters, weighers and policies, those of redsched and those of its users."""

from collections.abc import Mapping
from dataclasses import dataclass

from redsched.decide.filters import FILTERS
from redsched.decide.filters.limits import limits_filter
from redsched.decide.filters.metrics import metrics_filter
from redsched.decide.plugins.entry_points import own_code
from redsched.decide.plugins.nova import nova_filters, nova_weighers
from redsched.decide.rules import Filter
from redsched.decide.scoring import POLICIES, Weigher, weighers
from redsched.decide.scoring.registry import Policy, check_policy, check_weighers
from redsched.decide.scoring.weigher import Weighing
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.settings import Settings


@dataclass(frozen=True, slots=True)
class PluginRegistry:
    """The filters in their order, the weighers and policies by name; which policy and weights hold unless asked."""

    filters: tuple[Filter, ...]
    weighers: Mapping[str, Weigher]
    policies: Mapping[str, Policy]
    policy: str
    weights: Mapping[str, float]
    reads_projects: bool = False
    """Whether there are filters or weighers of others, which may look at a request's project."""


def tools(settings: Settings) -> PluginRegistry:
    """Put together what these settings and the installed entry points name.

    Raises InvalidRequest for code that cannot be loaded or is not what it should be, for a name that is given twice,
    and for a policy or weigher in the settings that does not exist.
    """
    own, from_nova = own_code(), nova_weighers(settings.nova_weighers)
    _check_names("weigher", weighers(settings), own.weighers, from_nova)
    _check_names("policy", POLICIES, own.policies, settings.policies)
    known = {**weighers(settings, own.weighers.values()), **from_nova}
    policies = {**POLICIES, **own.policies, **settings.policies}
    for name, policy in policies.items():
        check_weighers(f"policy {name!r}", policy, known)
    check_weighers("the setting weights", settings.weights, known)
    check_policy("REDSCHED_POLICY", settings.policy, policies)
    by_settings = (limits_filter(settings), metrics_filter(settings))
    filters = (*FILTERS, *by_settings, *own.filters, *nova_filters(settings.nova_filters))
    # A class that is named in nova_weighers is meant to be used: it brings its own multiplier, and this one times it.
    weights = {**dict.fromkeys(from_nova, 1.0), **settings.weights}
    others = bool(own.filters or own.weighers or settings.nova_filters or settings.nova_weighers)
    return PluginRegistry(filters, known, policies, settings.policy, weights, others)


def multipliers(request: Request, tools: PluginRegistry) -> Weighing:
    """Return the multiplier of each weigher: those of the policy, over these the settings', over these the request's.

    A request that names a policy has its own. One that says 0 does not want the weigher; where the operator says 0, an
    aggregate may still have a multiplier for its hosts. Raises InvalidRequest for a policy or weigher that does not
    exist.
    """
    chosen = request.policy or tools.policy
    check_policy("policy", chosen, tools.policies)
    check_weighers("weights", request.weights, tools.weighers)
    merged = {**_wished(request), **tools.policies[chosen], **tools.weights, **request.weights}
    unwanted = {name for name, multiplier in request.weights.items() if not multiplier}
    return {tools.weighers[name]: multiplier for name, multiplier in sorted(merged.items()) if name not in unwanted}


def _wished(request: Request) -> dict[str, float]:
    """What a request wishes by itself, whichever policy holds: soft groups and soft spreading would else do nothing."""
    wished = dict.fromkeys(("soft_affinity", "soft_anti_affinity"), 1.0) if request.server_group else {}
    return wished | ({"soft_spread": 1.0} if any(not spread.hard for spread in request.spread) else {})


def _check_names(what: str, ours: Mapping[str, object], *others: Mapping[str, object]) -> None:
    taken = set(ours)
    for names in others:
        for name in names:
            if name in taken:
                raise InvalidRequest(f"there is a {what} {name!r} already: give yours another name")
        taken.update(names)
