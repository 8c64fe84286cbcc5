"""The filters, which select the hosts that may take a request, in their order, each with its rejection reason.

A host is counted under the first reason that rejects it. So the filters on what a request names come first, as it does
not matter whether a host in another zone is down, then those on the state of the host, and amounts last. A class,
trait, zone or label that no host has rejects every host, as an ordinary "no fit". An amount is rejected under the name
of its resource class, a trait or label under `required:HW_CPU_X86_AVX2`, a group under `group:<name>`, guest NUMA cells
under `numa`, devices under `pci:<class>`.
"""

from redsched.decide.filters.aggregates import aggregate_metadata, member_of
from redsched.decide.filters.demands import demands
from redsched.decide.filters.hints import network
from redsched.decide.filters.hosts import attestation, hosts, liveness, status, zone
from redsched.decide.filters.labels import labels
from redsched.decide.filters.pools import groups, numa, pci
from redsched.decide.filters.query import query
from redsched.decide.filters.resources import resources
from redsched.decide.filters.traits import traits
from redsched.decide.rules import Filter, Rule
from redsched.model import Request

COUNT = "count"
"""The reason of hosts that fit one place, if all of them together have too few for the request's count."""

HOST_FILTERS: tuple[Filter, ...] = (
    zone,
    hosts,
    liveness,
    attestation,
    status,
    network,
    member_of,
    demands,
    aggregate_metadata,
    traits,
    labels,
)
"""The filters on hosts themselves: they read neither a request's amounts nor what a host has left, as queries may."""
FILTERS: tuple[Filter, ...] = (*HOST_FILTERS, query, resources, groups, numa, pci)
"""The filters without settings. `redsched.decide.plugins.registry` adds those with settings and users' own."""


def rules_of(request: Request, filters: tuple[Filter, ...] = FILTERS) -> tuple[Rule, ...]:
    """Return all rules of a request in the order in which they are tested: by filter, those about room last."""
    return tuple(sorted((rule for one in filters for rule in one(request)), key=lambda rule: rule.room))
