"""The smallest change of a request that lets one host take it: found edit by edit, each tried by deciding again.

An edit takes one thing back: some of an amount, one trait, one label, one condition. For the first rule that the host
fails, the first edit that makes it pass is kept, and so on until the host takes the request or nothing helps. What is
told has therefore been decided, with the same rules and the same search for pools as any request.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from redsched.cache.columns import Columns
from redsched.decide.assign import assignments, needs_of
from redsched.decide.company import company
from redsched.decide.filters import rules_of
from redsched.decide.filters.places import slot_free
from redsched.decide.rules import Rule
from redsched.decide.shape import POOLS, Shape
from redsched.model import Request

Value = TypeVar("Value")
MOST_EDITS = 8


@dataclass(frozen=True, slots=True)
class Edit:
    """A request with one thing taken back, and that in words."""

    says: str
    request: Request


def smallest_change(shape: Shape, row: int) -> tuple[Edit, ...]:
    """Return what to take back, one after the other, so that the host takes one place; () where nothing helps.

    The request of the last edit is the one that the host takes.
    """
    request, made = shape.request, list[Edit]()
    for _ in range(MOST_EDITS + 1):
        failed = failing(shape, request, row)
        if failed is None:
            return tuple(made)
        edits = _edits(shape, request, failed, row)
        found = next((edit for edit in edits if _passes(shape, failed, row, edit.request)), None)
        if found is None:
            return ()
        request = found.request
        made.append(found)
    return ()


@dataclass(frozen=True, slots=True)
class Failed:
    """What a host fails: the reason, whether it is about room, and the slot where it is about that alone."""

    reason: str
    room: bool
    slot: str | None = None


_POOLS = Failed(POOLS, room=True)


def failing(shape: Shape, request: Request, row: int) -> Failed | None:
    """The first rule that a host fails for a request like the shape's; None: it takes it."""
    columns = shape.columns
    for rule in _rules(shape, request):
        if not rule.passes(columns, row):
            return Failed(rule.reason, rule.room, rule.slot)
    return None if assignments(columns, row, needs_of(request), 1) else _POOLS


def _rules(shape: Shape, request: Request) -> Iterator[Rule]:
    rules = rules_of(request, shape.filters)
    yield from (rule for rule in rules if not rule.dynamic)
    yield from (rule for rule in rules if rule.dynamic)
    yield from company(request, shape.columns, lambda _by: shape.eligible)


def _passes(shape: Shape, failed: Failed, row: int, request: Request) -> bool:
    again = failing(shape, request, row)
    return again is None or again.reason != failed.reason


def _edits(shape: Shape, request: Request, failed: Failed, row: int) -> Iterator[Edit]:
    if failed.slot is not None:
        yield from _what_is_left(shape.columns, request, failed.slot, row)
    elif failed.room:
        yield from _less(request, partial(_passes, shape, failed, row))
    yield from _without(request, shape.columns, row)


def _what_is_left(columns: Columns, request: Request, slot: str, row: int) -> Iterator[Edit]:
    """As much of one class as the host gives, in its units."""
    step = columns.step[slot].item(row)
    most = min(slot_free(columns, slot, row), columns.maximum[slot].item(row)) // step * step
    if most > 0:
        yield Edit(f"{request.resources[slot] - most} {slot} less", _with_resource(request, slot, most))


def _less(request: Request, passes: Callable[[Request], bool]) -> Iterator[Edit]:
    """Amounts made just small enough, the one that has to give up the smallest part of itself first."""
    found: list[tuple[float, Edit]] = []
    for what, amount, build in _amounts(request):
        most = _most(amount, build, passes)
        if most:
            found.append(((amount - most) / amount, Edit(f"{amount - most} {what} less", build(most))))
    yield from (edit for _, edit in sorted(found, key=lambda one: one[0]))


def _most(amount: int, build: "Build", passes: Callable[[Request], bool]) -> int:
    """The largest smaller amount that passes, by halving; 0 where not even 1 does."""
    if amount < 2 or not passes(build(1)):
        return 0
    low, high = 1, amount
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(build(middle)) else (low, middle)
    return low


Build = Callable[[int], Request]


def _amounts(request: Request) -> Iterator[tuple[str, int, Build]]:
    """Every amount of a request: what it is of, how much, and the request with another one in its place."""
    for name, amount in request.resources.items():
        yield name, amount, partial(_with_resource, request, name)
    for at, group in enumerate(request.groups):
        for name, amount in group.resources.items():
            yield f"{name} in group {group.name}", amount, partial(_with_group_resource, request, at, name)
    for at, devices in enumerate(request.pci):
        yield devices.resource_class, devices.count, partial(_with_devices, request, at)


def _with_resource(request: Request, name: str, amount: int) -> Request:
    return replace(request, resources={**request.resources, name: amount})


def _with_group_resource(request: Request, at: int, name: str, amount: int) -> Request:
    group = replace(request.groups[at], resources={**request.groups[at].resources, name: amount})
    return replace(request, groups=(*request.groups[:at], group, *request.groups[at + 1 :]))


def _with_devices(request: Request, at: int, count: int) -> Request:
    devices = replace(request.pci[at], count=count)
    return replace(request, pci=(*request.pci[:at], devices, *request.pci[at + 1 :]))


def _without(request: Request, columns: Columns, row: int) -> Iterator[Edit]:
    """The request with one condition taken back."""
    zone = columns.zones.text(row)
    if request.zones and zone:
        yield _edit(f"in zone {zone} too", request, zones=request.zones | {zone})
    if request.hosts:
        yield _edit("on other hosts too", request, hosts=frozenset())
    for host in sorted(request.exclude_hosts & {columns.name(row)}):
        yield _edit(f"with host {host} allowed", request, exclude_hosts=request.exclude_hosts - {host})
    yield from _without_names(request)
    for key in sorted(request.labels):
        yield _edit(f"without label {key}", request, labels=_less_key(request.labels, key))
    for key in sorted(request.aggregate_metadata):
        less = _less_key(request.aggregate_metadata, key)
        yield _edit(f"without aggregate metadata {key}", request, aggregate_metadata=less)
    yield from _without_parts(request)
    for key in sorted(request.resources):
        if len(request.resources) > 1 or request.groups or request.numa or request.pci:
            yield _edit(f"without {key}", request, resources=_less_key(request.resources, key))


def _without_names(request: Request) -> Iterator[Edit]:
    for field, says in (
        ("required", "without trait {}"),
        ("forbidden", "with trait {} allowed"),
        ("root_required", "without trait {} of the root"),
        ("root_forbidden", "with trait {} of the root allowed"),
        ("not_member_of", "in aggregate {} too"),
    ):
        names = getattr(request, field)
        for name in sorted(names):
            yield _edit(says.format(name), request, **{field: names - {name}})
    for field in ("any_of", "member_of"):
        sets = getattr(request, field)
        for one in sets:
            rest = tuple(other for other in sets if other != one)
            yield _edit(f"without {field} {' or '.join(sorted(one))}", request, **{field: rest})


def _without_parts(request: Request) -> Iterator[Edit]:
    if request.query:
        yield _edit("without the query", request, query=())
    if request.server_group:
        yield _edit(f"without server group {request.server_group}", request, server_group="")
    for one in request.spread:
        rest = tuple(other for other in request.spread if other != one)
        yield _edit(f"without spreading over {one.by}", request, spread=rest)
    if request.hints.build_near_host_ip:
        yield _edit("without build_near_host_ip", request, hints=type(request.hints)())
    for one_set in request.same_subtree:
        rest_sets = tuple(other for other in request.same_subtree if other != one_set)
        yield _edit(f"without same_subtree {', '.join(sorted(one_set))}", request, same_subtree=rest_sets)
    if request.group_policy == "isolate":
        yield _edit("without group_policy isolate", request, group_policy="none")
    yield from _without_whole_parts(request)


def _without_whole_parts(request: Request) -> Iterator[Edit]:
    related = frozenset().union(*request.same_subtree)
    parts = len(request.groups) + len(request.pci) + bool(request.numa) + bool(request.resources)
    if parts < 2:
        return
    for group in request.groups:
        if group.name not in related:
            rest = tuple(other for other in request.groups if other.name != group.name)
            yield _edit(f"without group {group.name}", request, groups=rest)
    for devices in request.pci:
        others = tuple(other for other in request.pci if other != devices)
        yield _edit(f"without {devices.resource_class}", request, pci=others)
    if request.numa:
        yield _edit("without numa", request, numa=None)


def _edit(says: str, request: Request, **changed: Any) -> Edit:
    return Edit(says, replace(request, **changed))


def _less_key(values: Mapping[str, Value], key: str) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name != key}
