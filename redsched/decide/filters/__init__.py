"""Which hosts may take a request at all: the filters in their order, each with the reason that it gives.

Cheap and telling ones come first: a host is counted under the first reason that removes it, and "down" says more of a
host than the memory it lacks. What a request names and nothing holds (a class, trait, zone, label) removes every host,
as usual: it is an ordinary "no fit". An amount is refused under the name of its resource class, a trait or label under
`required:HW_CPU_X86_AVX2`, a group under `group:<name>`, guest NUMA cells under `numa`, devices under `pci:<class>`.
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
"""Given to hosts with room for one place, where all together have too few for the request's count."""

FILTERS: tuple[Filter, ...] = (
    liveness,
    attestation,
    status,
    zone,
    hosts,
    network,
    member_of,
    demands,
    aggregate_metadata,
    traits,
    labels,
    query,
    resources,
    groups,
    numa,
    pci,
)
"""Those that need no settings; `redsched.decide.plugins.registry` adds those that do, and those of users."""


def rules_of(request: Request, filters: tuple[Filter, ...] = FILTERS) -> tuple[Rule, ...]:
    """Return all rules of a request in the order in which they are tried: by filter, those about room last."""
    return tuple(sorted((rule for one in filters for rule in one(request)), key=lambda rule: rule.room))
