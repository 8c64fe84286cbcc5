"""The metrics of the fleet: what the hosts have, and what is left of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from redsched.cache.fleet import FleetUsage

FLEET_EVERY_S = 1.0
"""How long the figures are served again, before they are computed anew."""
_OF_CLASSES = {
    "capacity": ("capacity", "Capacity of the hosts that were not written off, in units of the class."),
    "claimed": ("claimed", "Amounts claimed of it."),
    "external": ("external", "Amounts used of it by work that belongs to no claim."),
    "kept": ("kept", "Amounts kept of it for requests that wait."),
    "free": ("free", "Amounts free on hosts that take claims."),
    "free_largest": ("largest", "The largest amount free in one place of a host, whatever its max_unit."),
    "stranded": ("stranded", "Amounts free on hosts that lack VCPU or memory for an average claim."),
}
"""The metrics by zone and class: the field of ClassUsage, and what it is."""
_BY_STATUS = {
    "hosts_by_status": ("hosts", "status", "Hosts by status."),
    "claims": ("claims", "host_status", "Claims by the status of their host."),
}
"""The metrics by status: the field of FleetUsage, the label, and what it is."""
_OF_CELLS = {
    "claims_starting": ("starting", "Claims that are not active yet."),
    "hosts_reserved": ("reserved", "Hosts reserved for requests that wait."),
    "hosts_over_capacity": ("over_capacity", "Hosts with less of a slot than their claims hold."),
    "pools_over_capacity": ("pools_over_capacity", "Shared pools with less of a class than their claims hold."),
    "server_groups_broken": ("broken_groups", "Server groups whose hard policy is broken by where members are."),
    "hosts_failing": ("failing", "Hosts on which several claims in a row have failed."),
}
"""The metrics of a whole cell: the field of FleetUsage, and what it is."""

_Cells = Mapping[str, "FleetUsage"]
_Values = Iterable[tuple[tuple[str, ...], int]]


class FleetMetrics:
    """The usage of each cell, from the replicas alone; and the release."""

    def __init__(self, fleet: Callable[[], Awaitable[_Cells]]) -> None:
        """Take a function that computes the usage of each cell."""
        self._fleet = fleet
        self._text = b""
        self._until_s = 0.0
        self._rendering = asyncio.Lock()

    async def text(self) -> bytes:
        """Return the metrics in Prometheus' text format, as of the last second."""
        async with self._rendering:
            if time.monotonic() >= self._until_s:
                cells = await self._fleet()
                self._text = b"".join([await _text(one) for one in families(cells)])
                self._until_s = time.monotonic() + FLEET_EVERY_S
        return self._text


class _One(Collector):
    def __init__(self, family: GaugeMetricFamily) -> None:
        self._family = family

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield self._family


async def _text(family: GaugeMetricFamily) -> bytes:
    """Return the text of one family, after letting other tasks run: many series take milliseconds."""
    await asyncio.sleep(0)
    registry = CollectorRegistry()
    registry.register(_One(family))
    return generate_latest(registry)


def families(cells: _Cells) -> Iterator[GaugeMetricFamily]:
    """Yield the metrics of these cells; of none, their names and help texts."""
    release = [((version("redsched"), python_version()), 1)]
    yield _family("build_info", "The release, and that of Python.", ("version", "python"), release)
    for name, (figure, about) in _OF_CLASSES.items():
        yield _family(name, about, ("cell", "zone", "class"), _of_classes(cells, figure))
    for name, (figure, label, about) in _BY_STATUS.items():
        yield _family(name, about, ("cell", label), _by_status(cells, figure))
    for name, (figure, about) in _OF_CELLS.items():
        values = [((cell,), getattr(usage, figure)) for cell, usage in cells.items()]
        yield _family(name, about, ("cell",), values)


def _of_classes(cells: _Cells, figure: str) -> _Values:
    for cell, usage in cells.items():
        for (zone, resource_class), one in usage.classes.items():
            yield (cell, zone, resource_class), getattr(one, figure)


def _by_status(cells: _Cells, figure: str) -> _Values:
    for cell, usage in cells.items():
        for status, count in getattr(usage, figure).items():
            yield (cell, status), count


def _family(name: str, about: str, labels: tuple[str, ...], values: _Values) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"redsched_{name}", about, labels=labels)
    for of, value in values:
        family.add_metric(of, value)
    return family
