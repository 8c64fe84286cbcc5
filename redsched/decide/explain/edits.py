"""Edits: the ways to relax a request in one respect, each with a description. Whether they help is tested elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from redsched.cache.columns import Columns
from redsched.decide.filters.places import pools_with, slot_of
from redsched.errors import InvalidRequest
from redsched.model import Group, Numa, NumaCell, Request
from redsched.model.gpus import GPU, NODE, count, gpus_of, share_a_node, short_form
from redsched.model.limits import MAX_PARTS
from redsched.model.workload import GPU_SHARES

Value = TypeVar("Value")
Change = tuple[str, Mapping[str, Any]]
"""A description of the edit, and the fields that it changes."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A request relaxed in one respect, with a description of the edit."""

    says: str
    request: Request


Build = Callable[[int], Request]


@dataclass(frozen=True, slots=True)
class Reducible:
    """An amount of a request, with a function that replaces it; `says` describes the request with another amount."""

    amount: int
    build: Build
    says: Callable[[int], str]
    resource_class: str = ""
    """The class, if units of hosts may forbid amounts of it."""
    choice: Callable[[Sequence[int]], str] = str
    """Describes the request with one of some other amounts."""

    def edit(self, amount: int) -> Edit:
        """Return the request with a smaller amount."""
        return Edit(self.says(amount), self.build(amount))

    def instead(self, amounts: Sequence[int], unit: str) -> Edit:
        """Return the request with the nearest of some amounts; `unit` forbids the present one."""
        nearest = min(amounts, key=lambda one: abs(one - self.amount))
        return Edit(f"{self.choice(amounts)} ({unit})", self.build(nearest))


def amounts(request: Request) -> Iterator[Reducible]:
    """Yield every amount of a request.

    Of identical groups only the first is included, as reducing another one would give the same request. Of several
    whole GPUs none is, as a request that asks for these wants no part of one.
    """
    for name in request.resources:
        yield of_class(request, name)
    gpus = gpus_of(request)
    for at, group in enumerate(request.groups):
        if group in gpus:
            if len(gpus) == 1:
                yield from _shares(request, at, group)
        elif not any(_are_alike(request, group, other) for other in request.groups[:at]):
            for name, amount in group.resources.items():
                what, build = f"{name} in group {group.name}", partial(_with_group, request, at, name)
                yield _reducible(what, amount, build, name)
    for at, devices in enumerate(request.pci):
        yield _reducible(devices.resource_class, devices.count, partial(_with_devices, request, at))
    yield from _of_cells(request.numa, partial(_with_numa, request)) if request.numa else ()


def of_class(request: Request, name: str) -> Reducible:
    """Return an unnumbered amount of a request."""
    return _reducible(name, request.resources[name], partial(with_resource, request, name), name)


def _reducible(what: str, amount: int, build: Build, resource_class: str = "") -> Reducible:
    def says(less: int) -> str:
        return f"{amount - less} {what} less"

    def choice(amounts: Sequence[int]) -> str:
        return f"{' or '.join(map(str, amounts))} {what} instead of {amount}"

    return Reducible(amount, build, says, resource_class, choice)


def _of_cells(numa: Numa, with_numa: Callable[[Numa], Request]) -> Iterator[Reducible]:
    """Yield the CPUs and the memory of each kind of guest cells, memory in steps that keep whole pages."""
    step_mb = max(1, (numa.page_size_kb or 0) // 1024)
    for cell in dict.fromkeys(numa.cells):
        if numa.cells.count(cell) == len(numa.cells):
            where = "in each NUMA cell" if len(numa.cells) > 1 else "in the NUMA cell"
        else:
            where = f"in NUMA cell {numa.cells.index(cell)}"

        def build(made: Callable[[int], NumaCell], amount: int, cell: NumaCell = cell) -> Request:
            changed = made(amount)
            return with_numa(replace(numa, cells=tuple(changed if one == cell else one for one in numa.cells)))

        def cpus(amount: int, cell: NumaCell = cell) -> NumaCell:
            return replace(cell, cpus=amount, dedicated_cpus=min(cell.dedicated_cpus, amount))

        def memory(steps: int, cell: NumaCell = cell) -> NumaCell:
            return replace(cell, memory_mb=steps * step_mb)

        yield _reducible(f"CPUs {where}", cell.cpus, partial(build, cpus))
        if cell.memory_mb:
            says = partial(_less_memory, cell.memory_mb, step_mb, where)
            yield Reducible(cell.memory_mb // step_mb, partial(build, memory), says)


def _less_memory(memory_mb: int, step_mb: int, where: str, steps: int) -> str:
    return f"{memory_mb - steps * step_mb} MEMORY_MB {where} less"


def _with_numa(request: Request, numa: Numa) -> Request:
    return replace(request, numa=numa)


def _shares(request: Request, at: int, gpu: Group) -> Iterator[Reducible]:
    """Yield the amounts of the only GPU of a request: its share, in the words of the short form, and others."""
    for name, amount in gpu.resources.items():
        build = partial(_with_group, request, at, name)
        if name == GPU_SHARES:
            yield Reducible(
                amount, build, lambda less: _gpus_instead([less], gpu), name, lambda of: _gpus_instead(of, gpu)
            )
        else:
            yield _reducible(f"{name} of the GPU", amount, build, name)


def _gpus_instead(shares: Sequence[int], gpu: Group) -> str:
    return f"{' or '.join(f'{GPU}={count(one)}' for one in shares)} instead of {short_form([gpu])}"


def _are_alike(request: Request, group: Group, other: Group) -> bool:
    """Return whether groups can be exchanged: they differ in their names only, and belong to the same subtrees."""
    is_apart = any((group.name in names) != (other.name in names) for names in request.same_subtree)
    return not is_apart and replace(other, name=group.name) == group


def with_resource(request: Request, name: str, amount: int) -> Request:
    """Return the request with another amount of one of its unnumbered resources."""
    return replace(request, resources={**request.resources, name: amount})


def _with_group(request: Request, at: int, name: str, amount: int) -> Request:
    group = replace(request.groups[at], resources={**request.groups[at].resources, name: amount})
    return replace(request, groups=(*request.groups[:at], group, *request.groups[at + 1 :]))


def _with_devices(request: Request, at: int, count: int) -> Request:
    devices = replace(request.pci[at], count=count)
    return replace(request, pci=(*request.pci[:at], devices, *request.pci[at + 1 :]))


def identical_groups(request: Request) -> Iterator[Reducible]:
    """Yield the number of each set of identical groups. Fewer of them are the first ones."""
    gpus = gpus_of(request)
    for at, group in enumerate(request.groups):
        if not any(_are_alike(request, group, other) for other in request.groups[:at]):
            alike = [one for one in request.groups[at:] if _are_alike(request, group, one)]
            if len(alike) > 1:
                yield Reducible(len(alike), partial(_with_groups, request, alike), partial(_fewer, alike, gpus))


def _fewer(alike: Sequence[Group], gpus: Sequence[Group], number: int) -> str:
    if alike[0] in gpus:
        return f"{short_form(alike[:number])} instead of {short_form(alike)}"
    left_out = [group.name for group in alike[number:]]
    return f"without group{'s' * (len(left_out) > 1)} {', '.join(left_out)}"


def _with_groups(request: Request, alike: Sequence[Group], number: int) -> Request:
    return _less_groups(request, alike[number:])


def _less_groups(request: Request, left_out: Sequence[Group]) -> Request:
    names = frozenset(group.name for group in left_out)
    groups = tuple(group for group in request.groups if group.name not in names)
    return replace(request, groups=groups, same_subtree=tuple(one - names for one in request.same_subtree))


def in_groups(request: Request, columns: Columns, row: int, name: str) -> Edit | None:
    """Return the request with an amount in groups, each of which one place of the host may give if nothing is on it.

    None if one place may give all of it, or no place has any. Traits that only pools of the host have go with it.
    """
    amount, whole = request.resources[name], _largest_capacity(columns, name, row)
    if not 0 < whole < amount or -(-amount // whole) > MAX_PARTS:
        return None
    sizes = [whole] * (amount // whole) + ([amount % whole] if amount % whole else [])
    taken = {group.name for group in request.groups}
    names = [one for number in range(len(sizes) + len(taken)) if (one := f"part{number + 1}") not in taken]
    of_pools = frozenset(trait for trait in request.required if not columns.traits[trait][row])
    made = (Group(one, {name: size}, of_pools, request.forbidden) for one, size in zip(names, sizes, strict=False))
    with suppress(InvalidRequest):
        changed = replace(
            request,
            resources=_less_key(request.resources, name),
            required=request.required - of_pools,
            groups=(*request.groups, *made),
        )
        return Edit(f"{amount} {name} as {_in_words(sizes)}, because no place of it has more than {whole}", changed)
    return None


def _largest_capacity(columns: Columns, name: str, row: int) -> int:
    """Return the most that one claim could take from one place of a host if nothing were on it."""
    slots = [slot_of(place, name) for place in ("", *pools_with(columns, ((name, 1),), row))]
    return max(min(columns.capacity[slot].item(row), columns.maximum[slot].item(row)) for slot in slots)


def _in_words(sizes: Sequence[int]) -> str:
    """Return "2 groups of 1000", or "groups of 1000, 1000 and 500"."""
    if sizes[0] == sizes[-1]:
        return f"{len(sizes)} groups of {sizes[0]}"
    return f"groups of {', '.join(map(str, sizes[:-1]))} and {sizes[-1]}"


def without(request: Request, columns: Columns, row: int) -> Iterator[Edit]:
    """Yield the request with one condition removed, for each condition whose removal leaves a valid request."""
    yield from _valid(request, _conditions(request, columns, row))


def without_parts(request: Request) -> Iterator[Edit]:
    """Yield the request with one of its parts, or all of one amount, removed, as far as that leaves a valid request."""
    yield from _valid(request, _parts(request))


def _valid(request: Request, changes: Iterator[Change]) -> Iterator[Edit]:
    for says, changed in changes:
        with suppress(InvalidRequest):
            yield Edit(says, replace(request, **changed))


def _conditions(request: Request, columns: Columns, row: int) -> Iterator[Change]:
    zone = columns.zones.text(row)
    if request.zones and zone:
        yield _change(f"with zone {zone} allowed", zones=request.zones | {zone})
    if request.hosts:
        yield _change("with other hosts allowed", hosts=frozenset())
    for host in sorted(request.exclude_hosts & {columns.name(row)}):
        yield _change(f"with host {host} allowed", exclude_hosts=request.exclude_hosts - {host})
    yield from _without_names(request)
    for key in sorted(request.labels):
        yield _change(f"without label {key}", labels=_less_key(request.labels, key))
    for key in sorted(request.aggregate_metadata):
        less = _less_key(request.aggregate_metadata, key)
        yield _change(f"without aggregate metadata {key}", aggregate_metadata=less)
    yield from _without_relations(request)
    yield from _without_traits_of_parts(request)


def _without_traits_of_parts(request: Request) -> Iterator[Change]:
    for at, group in enumerate(request.groups):
        for field, says in (
            ("required", "without trait {} in group {}"),
            ("forbidden", "with trait {} in group {} allowed"),
        ):
            names = getattr(group, field)
            for name in sorted(names):
                changed = replace(group, **{field: names - {name}})
                groups = (*request.groups[:at], changed, *request.groups[at + 1 :])
                yield _change(says.format(name, group.name), groups=groups)
    for at, devices in enumerate(request.pci):
        for name in sorted(devices.required):
            less = replace(devices, required=devices.required - {name})
            pci = (*request.pci[:at], less, *request.pci[at + 1 :])
            yield _change(f"without trait {name} of {devices.resource_class}", pci=pci)


def _without_names(request: Request) -> Iterator[Change]:
    for field, says in (
        ("required", "without trait {}"),
        ("forbidden", "with trait {} allowed"),
        ("root_required", "without trait {} of the root"),
        ("root_forbidden", "with trait {} of the root allowed"),
        ("not_member_of", "with aggregate {} allowed"),
    ):
        names = getattr(request, field)
        for name in sorted(names):
            yield _change(says.format(name), **{field: names - {name}})
    for field in ("any_of", "member_of"):
        sets = getattr(request, field)
        for one in sets:
            rest = tuple(other for other in sets if other != one)
            yield _change(f"without {field} {' or '.join(sorted(one))}", **{field: rest})


def _without_relations(request: Request) -> Iterator[Change]:
    gpus = gpus_of(request)
    if request.query:
        yield _change("without the query", query=())
    if request.server_group:
        yield _change(f"without server group {request.server_group}", server_group="")
    for one in request.spread:
        rest = tuple(other for other in request.spread if other != one)
        yield _change(f"without spreading over {one.by}", spread=rest)
    if request.hints.build_near_host_ip:
        yield _change("without build_near_host_ip", hints=type(request.hints)())
    for one_set in request.same_subtree:
        rest_sets = tuple(other for other in request.same_subtree if other != one_set)
        related = frozenset().union(*rest_sets)
        groups = tuple(group for group in request.groups if group.resources or group.name in related)
        says = f"without same_subtree {', '.join(sorted(one_set))}"
        if gpus and share_a_node(request, gpus) and NODE in one_set:
            says = "from several NUMA nodes"
        yield _change(says, same_subtree=rest_sets, groups=groups)
    if request.group_policy == "isolate":
        yield _change("without group_policy isolate", group_policy="none")


def _parts(request: Request) -> Iterator[Change]:
    yield from _whole_parts(request)
    for key in sorted(request.resources):
        if len(request.resources) > 1 or request.groups or request.numa or request.pci:
            yield _change(f"without {key}", resources=_less_key(request.resources, key))


def _whole_parts(request: Request) -> Iterator[Change]:
    related = frozenset().union(*request.same_subtree)
    parts = len(request.groups) + len(request.pci) + bool(request.numa) + bool(request.resources)
    if parts < 2:
        return
    gpus = gpus_of(request)
    for at, group in enumerate(request.groups):
        if group.name not in related and not any(_are_alike(request, group, one) for one in request.groups[:at]):
            left_out = gpus if group in gpus else (group,)
            says = f"without {short_form(gpus)}" if group in gpus else f"without group {group.name}"
            yield _change(says, groups=tuple(other for other in request.groups if other not in left_out))
    for devices in request.pci:
        others = tuple(other for other in request.pci if other != devices)
        yield _change(f"without {devices.resource_class}", pci=others)
    if request.numa:
        yield _change("without numa", numa=None)


def _change(says: str, **changed: Any) -> Change:
    return says, changed


def _less_key(values: Mapping[str, Value], key: str) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name != key}
