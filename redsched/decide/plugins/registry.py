"""The filters, weighers and policies in use: redsched's own, and those of its users."""

from collections.abc import Mapping
from dataclasses import dataclass

from redsched.decide.filters import FILTERS
from redsched.decide.filters.limits import limits_filter
from redsched.decide.filters.metrics import metrics_filter
from redsched.decide.plugins.entry_points import own_code
from redsched.decide.plugins.nova import nova_filters, nova_weighers, read_nova_conf, refuse_unusable
from redsched.decide.rules import Filter
from redsched.decide.scoring import POLICIES, Weigher, weighers
from redsched.decide.scoring.registry import Policy, check_policy, check_weighers, sparing
from redsched.decide.scoring.weigher import Weighing
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.settings import Settings


@dataclass(frozen=True, slots=True)
class PluginRegistry:
    """The filters in order, the weighers and policies by name, and the default policy and weights."""

    filters: tuple[Filter, ...]
    weighers: Mapping[str, Weigher]
    policies: Mapping[str, Policy]
    policy: str
    weights: Mapping[str, float]
    reads_projects: bool = False
    """Whether there are user-supplied filters or weighers, which may read a request's project."""


def plugin_registry(settings: Settings) -> PluginRegistry:
    """Collect what these settings and the installed entry points name.

    Raises InvalidRequest if a plugin cannot be loaded or is invalid, if a name is used twice, or if the settings name
    an unknown policy or weigher, or an unusable nova.conf.
    """
    read_nova_conf(settings.nova_conf)  # before the classes, which may read it when they are made
    own, from_nova = own_code(), nova_weighers(settings.nova_weighers)
    _check_names("weigher", weighers(settings), own.weighers, from_nova)
    _check_names("policy", POLICIES, own.policies, settings.policies)
    known = {**weighers(settings, own.weighers.values()), **from_nova}
    policies = {**POLICIES, **own.policies, **settings.policies}
    policies = {name: sparing(policy, settings) for name, policy in policies.items()}
    for name, policy in policies.items():
        check_weighers(f"policy {name!r}", policy, known)
    check_weighers("the setting weights", settings.weights, known)
    check_policy("REDSCHED_POLICY", settings.policy, policies)
    by_settings = (limits_filter(settings), metrics_filter(settings))
    filters = (*FILTERS, *by_settings, *own.filters, *nova_filters(settings.nova_filters))
    refuse_unusable(settings)
    # Naming a class in nova_weighers enables it: it brings its own multiplier, which this one scales.
    weights = {**dict.fromkeys(from_nova, 1.0), **settings.weights}
    others = bool(own.filters or own.weighers or settings.nova_filters or settings.nova_weighers)
    return PluginRegistry(filters, known, policies, settings.policy, weights, others)


def multipliers(request: Request, registry: PluginRegistry) -> Weighing:
    """Return the multiplier of each weigher: the policy's, overridden by the settings', overridden by the request's.

    A request that names a policy gets that one. A multiplier of 0 in the request disables the weigher; if the operator
    sets 0, an aggregate may still have a multiplier for its hosts. Raises InvalidRequest for an unknown policy or
    weigher.
    """
    chosen = request.policy or registry.policy
    check_policy("policy", chosen, registry.policies)
    check_weighers("weights", request.weights, registry.weighers)
    merged = {**_implied_weights(request), **registry.policies[chosen], **registry.weights, **request.weights}
    unwanted = {name for name, multiplier in request.weights.items() if not multiplier}
    return {registry.weighers[name]: multiplier for name, multiplier in sorted(merged.items()) if name not in unwanted}


def _implied_weights(request: Request) -> dict[str, float]:
    """Return the weights that a request implies under any policy, without which soft rules would have no effect."""
    wished = dict.fromkeys(("soft_affinity", "soft_anti_affinity"), 1.0) if request.server_group else {}
    return wished | ({"soft_spread": 1.0} if any(not spread.hard for spread in request.spread) else {})


def _check_names(what: str, ours: Mapping[str, object], *others: Mapping[str, object]) -> None:
    taken = set(ours)
    for names in others:
        for name in names:
            if name in taken:
                raise InvalidRequest(f"there is a {what} {name!r} already: give yours another name")
        taken.update(names)
