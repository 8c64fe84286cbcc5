"""The metrics of the fleet: what the hosts have, and what is left of it."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING

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
    "free_largest": ("largest", "The largest amount free in one place of a host."),
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
    "hosts_failing": ("failing", "Hosts on which several claims in a row have failed."),
}
"""The metrics of a whole cell: the field of FleetUsage, and what it is."""

_Cells = Mapping[str, "FleetUsage"]
_Values = Iterable[tuple[tuple[str, ...], int]]


class FleetCollector(Collector):
    """The usage of each cell, computed when it is served, from the replicas alone; and the release."""

    def __init__(self, fleet: Callable[[], _Cells] = dict) -> None:
        self._fleet = fleet
        self._found: _Cells = {}
        self._until_s = 0.0

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families without values."""
        return _families({})

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families with the values of the last second."""
        now_s = time.monotonic()
        if now_s >= self._until_s:
            self._found, self._until_s = self._fleet(), now_s + FLEET_EVERY_S
        return _families(self._found)


def _families(cells: _Cells) -> Iterator[GaugeMetricFamily]:
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
