"""Worlds of `cases.candidates` in redsched's terms, and its candidate for each query on each host."""

import math
from random import Random
from typing import Any

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.model import Group, Request
from redsched.settings import Settings
from tests.oracle.cases.candidates import Place, Query, World
from tests.oracle.digests import digest
from tests.support.builders.columns import columns_of

IN_SERVICE = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1", "zone": "az1"}


def candidates(world: World) -> list[list[str]]:
    """Return for each query a digest of the candidate on each host, '' if there is none."""
    columns = columns_for(world)
    decider = Decider(columns, Settings(pick_from=1))
    hosts = [f"h{number}" for number in range(len(world.hosts))]
    return [[_candidate(decider, query, host) for host in hosts] for query in world.queries]


def columns_for(world: World) -> Columns:
    """Return the hosts and shared pools of a world."""
    columns = columns_of(**{f"h{number}": _host(host) for number, host in enumerate(world.hosts)})
    for name, place in world.shared.items():
        fields = _place("", place) | {f"aggregate.{one}": "1" for one in place["aggregates"]}
        columns.declared.put("pool", name, {"version": "1"} | fields)
    return columns


def _host(host: dict[str, Any]) -> dict[str, str]:
    fields = IN_SERVICE | {f"aggregate.{name}": "1" for name in host["aggregates"]}
    for name, place in host["places"].items():
        fields |= _place(name, place)
        if name:
            fields[f"pool.{name}"] = place["parent"] or "/"
    return fields


def _place(name: str, place: Place) -> dict[str, str]:
    prefix = f"{name}/" if name else ""
    fields = {f"trait.{prefix}{trait}": "1" for trait in place["traits"]}
    for resource_class, (total, reserved, ratio, least, most, step) in place["inventories"].items():
        slot = f"{prefix}{resource_class}"
        fields |= {f"capacity.{slot}": str(math.floor((total - reserved) * ratio)), f"ratio.{slot}": str(ratio)}
        fields |= {f"min.{slot}": str(least), f"max.{slot}": str(most), f"step.{slot}": str(step)}
    return fields


def _candidate(decider: Decider, query: Query, host: str) -> str:
    places = decider.decide(request_for(query, host), Random(0)).places
    if not places:
        return ""
    taken: dict[str, dict[str, int]] = {}
    for slot, amount in places[0].chosen.amounts.items():
        place, _, resource_class = slot.rpartition("/")
        taken.setdefault(place, {})[resource_class] = amount
    return digest(taken)


def request_for(query: Query, host: str) -> Request:
    """Return a query as a request for one host."""
    fields: dict[str, Any] = dict(query)
    in_tree = fields.pop("in_tree", host)
    groups = tuple(Group(**_sets(group)) for group in fields.pop("groups", ()))
    # A request that names another host fits nowhere here, as an in_tree of another one.
    named = frozenset({host}) if in_tree == host else frozenset({"elsewhere"})
    return Request(**_sets(fields), groups=groups, hosts=named)


def _sets(fields: dict[str, Any]) -> dict[str, Any]:
    sets = ("required", "forbidden", "root_required", "root_forbidden", "not_member_of")
    lists = ("any_of", "member_of", "same_subtree")
    found = {key: frozenset(value) if key in sets else value for key, value in fields.items()}
    return found | {key: tuple(map(frozenset, fields[key])) for key in lists if key in fields}
