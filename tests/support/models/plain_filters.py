"""The constraints of docs/constraints.md evaluated host by host on plain fields: slow, obvious, and without numpy.

`verdicts` returns whether a host passes each rule of a request, by the reason that the rule gives.
"""

import math
import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

from redsched.model import Request

Fields = Mapping[str, str]

COMPARE = {"=": operator.eq, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}
WORDS = {"==": operator.eq, "!=": operator.ne, **COMPARE}
NAMES = ("<range-in>", "<all-in>", "<like>", "<or>", "<in>", *(f"s{one}" for one in WORDS if one != "="), *WORDS)
OPERATORS = sorted(NAMES, key=len, reverse=True)


@dataclass(frozen=True)
class Around:
    """The declared objects: metadata of aggregates by name, traits and aggregates of shared pools by name."""

    aggregates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pools: Mapping[str, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """The settings."""

    claims: int = 0
    starting: int = 0


def verdicts(name: str, fields: Fields, around: Around, request: Request, limits: Limits) -> dict[str, bool]:
    """Return whether a host passes each rule on location, traits, labels, the query and numbers."""
    mine = {one: around.aggregates.get(one, {}) for one in aggregates_of(fields)}
    return {
        **dict(_near(fields, request)),
        **dict(_chosen(set(mine), mine, request)),
        "aggregate-projects": _listed_or_unlisted(mine, "filter_tenant_id", request.project),
        "aggregate-traits": all(_wanted(one, "trait:", required_anywhere(request)) for one in mine.values()),
        "aggregate-labels": all(
            _wanted(one, "label:", {k for k, v in request.labels.items() if v}) for one in mine.values()
        ),
        "aggregate-properties": _properties(mine, around, request),
        **dict(_traits(fields, around, request)),
        **{f"labels:{key}": holds(fields.get(f"label.{key}", ""), text) for key, text in request.labels.items()},
        **({"query": truth(request.query, name, fields)} if request.query else {}),
        "max_claims_per_host": _number(fields, "claims") < limit(mine, ("max_claims", "max_instances"), limits.claims),
        "max_starting_per_host": _number(fields, "starting")
        < limit(mine, ("max_starting", "max_io_ops"), limits.starting),
    }


def _number(fields: Fields, name: str) -> int:
    return int(fields.get(name) or 0)


def aggregates_of(fields: Fields) -> set[str]:
    """Return the aggregates of a host."""
    return {one.removeprefix("aggregate.") for one, value in fields.items() if one.startswith("aggregate.") and value}


def _near(fields: Fields, request: Request) -> Iterator[tuple[str, bool]]:
    if request.hints.build_near_host_ip:
        try:
            address = ip_address(fields.get("label.ip", ""))
        except ValueError:
            yield "build_near_host_ip", False
        else:
            yield "build_near_host_ip", address in ip_network(request.hints.network(), strict=False)


def _chosen(names: set[str], mine: Mapping[str, Fields], request: Request) -> Iterator[tuple[str, bool]]:
    for one in request.member_of:
        yield f"member_of:{','.join(sorted(one))}", bool(one & names)
    if request.not_member_of:
        yield "not_member_of", not request.not_member_of & names
    for key, text in request.aggregate_metadata.items():
        lists = [one[key] for one in mine.values() if key in one]
        if not text.startswith("<all-in>"):
            lists = [value for one in lists for value in one.split(",")]
        said = [value.strip() for value in lists]
        yield f"aggregate_metadata:{key}", any(value and holds(value, text) for value in said)


def _values(text: str) -> set[str]:
    return {one.strip() for one in text.split(",")}


def _listed_or_unlisted(mine: Mapping[str, Fields], prefix: str, value: str | None) -> bool:
    """Return whether no aggregate of the host lists anything under such keys, or one of them lists the value."""
    lists = [text for one in mine.values() for key, text in one.items() if key.startswith(prefix)]
    return not lists or any(value and value in _values(text) for text in lists)


def required_anywhere(request: Request) -> set[str]:
    """Return the traits that a request requires, at the top, of the root, in groups and of devices."""
    inner = [one.required for one in request.groups] + [one.required for one in request.pci]
    return set().union(request.required, request.root_required, *inner)


def _wanted(said: Fields, prefix: str, asked: set[str]) -> bool:
    words = {key.removeprefix(prefix): value for key, value in said.items() if key.startswith(prefix)}
    return all(value == "required" if what in asked else value == "forbidden" for what, value in words.items())


def _properties(mine: Mapping[str, Fields], around: Around, request: Request) -> bool:
    keys = {key for one in mine.values() for key in one}
    for key in keys:
        kind, _, what = key.partition(":")
        have = request.properties.get(what)
        if kind == "property-forbidden" and have is not None and _says(mine, key, have):
            return False
        if kind == "property" and have is not None and not _says(mine, key, have):
            return False
        if kind == "property-required" and what != "instance_type" and not (have and _says(mine, key, have)):
            return False
    flavour = request.properties.get("instance_type", "")
    names = keys & {"instance_type", "property-required:instance_type"}
    if names and not any(_says(mine, key, flavour) for key in names):
        return False
    return all(_confined(mine, around, f"property-confined:{what}", have) for what, have in request.properties.items())


def _says(aggregates: Mapping[str, Fields], key: str, value: str) -> bool:
    return any(value in _values(one[key]) for one in aggregates.values() if key in one)


def _confined(mine: Mapping[str, Fields], around: Around, key: str, value: str) -> bool:
    return not _says(around.aggregates, key, value) or _says(mine, key, value)


def _traits(fields: Fields, around: Around, request: Request) -> Iterator[tuple[str, bool]]:
    held = {one.removeprefix("trait.") for one, value in fields.items() if one.startswith("trait.") and value}
    root = {one for one in held if "/" not in one}
    shared = [traits for traits, of in around.pools.values() if not of or of & aggregates_of(fields)]
    anywhere = {one.rpartition("/")[2] for one in held}.union(*shared)
    yield from ((f"required:{one}", one in anywhere) for one in request.required)
    yield from ((f"forbidden:{one}", one not in root) for one in request.forbidden)
    yield from ((f"any_of:{','.join(sorted(one))}", bool(one & anywhere)) for one in request.any_of)
    yield from ((f"root_required:{one}", one in root) for one in request.root_required)
    yield from ((f"root_forbidden:{one}", one not in root) for one in request.root_forbidden)


def limit(mine: Mapping[str, Fields], names: tuple[str, str], otherwise: int) -> float:
    """Return the lowest number that an aggregate sets, else that of the setting; 0 is none."""
    said = [value for one in mine.values() for key, value in one.items() if key.removesuffix("_per_host") in names]
    numbers = [(int(one) or math.inf) if one.isdecimal() else 0 for one in said]
    return min(numbers, default=otherwise or math.inf)


# Conditions


def as_number(text: str) -> float | None:
    """Return a string as a number."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def holds(have: str, text: str) -> bool:
    """Return whether a value ('': none) satisfies a condition."""
    name = next((one for one in OPERATORS if text.startswith(one)), "")
    want = text[len(name) :].strip()
    if not name:
        return have == text
    if not have:
        return False
    if name == "<or>":
        return have in [one.strip() for one in want.split("<or>")]
    if name == "<in>":
        return want in have
    if name == "<all-in>":
        items = have.strip("[]").replace(",", " ").replace("'", "").replace('"', "").split()
        return all(one in items for one in want.split())
    if name == "<like>":
        return any(re.fullmatch(re.escape(want).replace(r"\*", ".*"), one.strip()) for one in have.split(","))
    if name.startswith("s"):
        return bool(WORDS[name[1:]](have, want))
    return _holds_number(as_number(have), name, want)


def _holds_number(have: float | None, name: str, want: str) -> bool:
    if have is None:
        return False
    if name == "<range-in>":
        opening, low, high, closing = want.split()
        above = have > float(low) or (opening == "[" and have == float(low))
        return above and (have < float(high) or (closing == "]" and have == float(high)))
    return bool(WORDS[">=" if name == "=" else name](have, float(want)))


# Queries


def truth(query: Any, name: str, fields: Fields) -> bool:
    """Return whether a query is true of a host."""
    if isinstance(query, bool):
        return query
    word, *arguments = query
    if word in ("and", "or", "not"):
        found = [truth(one, name, fields) for one in arguments]
        return {"and": all(found), "or": any(found), "not": not all(found)}[word]
    first, *others = [value_of(one, name, fields) for one in arguments]
    if word == "in":
        return any(related("=", first, one) for one in others)
    return all(related(word, first, one) for one in others)


def value_of(argument: Any, name: str, fields: Fields) -> Any:
    """Return a constant, or a host's value of a variable; None if it has none."""
    if not isinstance(argument, str) or not argument.startswith("$"):
        return argument
    kind, _, key = argument[1:].partition(".")
    if kind == "free":
        capacity, claimed, external = (_number(fields, f"{one}.{key}") for one in ("capacity", "claimed", "external"))
        return capacity - claimed - external
    if kind in ("capacity", "claimed", "external"):
        return _number(fields, f"{kind}.{key}")
    if kind in ("claims", "starting"):
        return _number(fields, kind)
    if kind == "metric":
        return as_number(fields.get(f"metric.{key}", ""))
    if kind == "status":
        return fields["status"] if fields.get("status") in ("enabled", "draining") else "disabled"
    return {"zone": fields.get("zone"), "host": name, "label": fields.get(f"label.{key}")}[kind] or None


def related(word: str, first: Any, other: Any) -> bool:
    """Return whether two values compare so; a string compares with a number as a number."""
    if isinstance(first, str) != isinstance(other, str):
        first = as_number(first) if isinstance(first, str) else first
        other = as_number(other) if isinstance(other, str) else other
    return first is not None and other is not None and bool(COMPARE[word](first, other))
