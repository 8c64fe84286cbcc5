"""Weighers of a host's resources and activity: ram, cpu, disk, io_ops, pci, build_failure, metrics and so on.

They are Nova's, and all are relative, except for redsched's own `failures`. The raw scores are those of Nova's classes
of these names; docs/weighing.md has the list.
"""

from collections.abc import Callable, Mapping

import numpy as np

from redsched.cache.arrays import TextColumn
from redsched.cache.columns import Columns
from redsched.decide.conditions import number_of
from redsched.decide.rules import Rows
from redsched.decide.scoring.demand import room, unscaled_free
from redsched.decide.scoring.weigher import Score
from redsched.model import Request
from redsched.model.validation import split_slot

HYPERVISOR_VERSION = "hypervisor_version"
"""The label with the version: Nova's number (8002000), or dotted (8.2.0)."""

MAX_DEVICES = 100
_DEVICE_PREFIX = "CUSTOM_PCI_"
_DEVICES = frozenset(("SRIOV_NET_VF",))


def free_of(resource_class: str) -> Callable[[Columns, Request, Rows], Score]:
    """Make the raw score of cpu: the free amount of a class, on the host and its pools."""

    def raw(columns: Columns, _request: Request, rows: Rows) -> Score:
        return room(columns, resource_class, rows)[1] * 1.0

    return raw


def unscaled_free_of(resource_class: str) -> Callable[[Columns, Request, Rows], Score]:
    """Make the raw score of ram and disk: what is free of a class if allocation ratios do not count, as in Nova."""

    def raw(columns: Columns, _request: Request, rows: Rows) -> Score:
        return unscaled_free(columns, resource_class, rows) * 1.0

    return raw


def io_ops(columns: Columns, _request: Request, rows: Rows) -> Score:
    """Return the host's claims that are not active yet: work being started."""
    return columns.starting[rows] * 1.0


def num_instances(columns: Columns, _request: Request, rows: Rows) -> Score:
    """Return the number of the host's claims."""
    return columns.claims[rows] * 1.0


def build_failure(columns: Columns, _request: Request, rows: Rows) -> Score:
    """Return the host's hook failures since the last success."""
    return columns.failures[rows] * 1.0


def failures(columns: Columns, _request: Request, rows: Rows) -> Score:
    """Return the failures scaled to 0..1: n / (n + 1) after n failures, so that the first one counts most."""
    failed = columns.failures[rows]
    return failed / (failed + 1)


def pci(columns: Columns, request: Request, rows: Rows) -> Score:
    """Return 100 - free devices (at most 99), to reserve hosts with many devices for requests that need them.

    Devices are the amounts of CUSTOM_PCI_ classes, SRIOV_NET_VF and the classes in the request's `pci`.
    """
    requested = {devices.resource_class for devices in request.pci}
    count: Score = columns.claims[rows] * 0.0
    for resource_class in sorted(requested | columns.of_inventory(device_classes, device_classes)):
        count = count + np.maximum(0, room(columns, resource_class, rows)[1])
    return MAX_DEVICES - np.minimum(count, MAX_DEVICES - 1)


def device_classes(columns: Columns) -> frozenset[str]:
    """Return the classes that count PCI devices, of those that any host has."""
    classes = {split_slot(slot)[1] for slot in columns.capacity}
    return frozenset(one for one in classes if one.startswith(_DEVICE_PREFIX) or one in _DEVICES)


def hypervisor_version(columns: Columns, _request: Request, rows: Rows) -> Score:
    """Return the version in the label hypervisor_version; 0 without one."""
    texts = columns.labels.get(HYPERVISOR_VERSION)
    if texts is None:
        return columns.claims[rows] * 0.0
    return _numbers(texts)[texts.codes[rows]]


def _numbers(texts: TextColumn) -> Score:
    # The last entry is for rows without a text, whose code is -1.
    return np.array([*map(version_number, texts.by_code), 0.0])


def version_number(text: str) -> float:
    """Parse `8.2.0` as Nova's 8002000 (each part a thousand times the next), and a plain number as itself; else 0."""
    parts = text.split(".")
    if len(parts) == 1:
        return max(0.0, float(np.nan_to_num(number_of(text))))
    if len(parts) > 4 or not all(part.isascii() and part.isdecimal() and len(part) < 7 for part in parts):
        return 0.0
    number = 0.0
    for part in (*parts, "0")[: max(3, len(parts))]:
        number = number * 1000 + int(part)
    return number


def cross_cell(columns: Columns, request: Request, rows: Rows) -> Score:
    """Return 1 for hosts in the cell that a moving claim leaves, and 0 for others: Nova's 1 and -1, normalized.

    A request that moves work excludes the hosts it leaves; the cell with one of these is its cell. All hosts of a cell
    have the same number, so it cannot be normalized here: its purpose, as in Nova, is to choose between cells.
    """
    here = any(columns.row(host) is not None for host in request.exclude_hosts)
    return columns.claims[rows] * 0.0 + float(here)


def metrics(factors: Mapping[str, float], unavailable: float) -> Callable[[Columns, Request, Rows], Score]:
    """Make the raw score of the metrics weigher: the sum of each metric times its factor.

    The score is `unavailable` if a host lacks one of them. A factor of 0 requires nothing.
    """
    wanted = sorted((name, factor) for name, factor in factors.items() if factor)

    def raw(columns: Columns, _request: Request, rows: Rows) -> Score:
        total: Score = columns.claims[rows] * 0.0
        for name, factor in wanted:
            total = total + columns.metrics[name][rows] * factor
        return np.where(np.isfinite(total), total, unavailable)[()]

    return raw


def image_props(factors: Mapping[str, float]) -> Callable[[Columns, Request, Rows], Score]:
    """Make the raw score of image_props: the sum of the factors of those properties that are also labels of the host.

    Without factors each property counts 1.
    """

    def raw(columns: Columns, request: Request, rows: Rows) -> Score:
        total: Score = columns.claims[rows] * 0.0
        for key, value in sorted(request.properties.items()):
            factor = factors.get(key, 0.0) if factors else 1.0
            texts: TextColumn | None = columns.labels.get(key)
            if factor and texts is not None:
                total = total + (texts.codes[rows] == texts.code(value)) * factor
        return total

    return raw
