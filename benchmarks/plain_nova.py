"""Nova's thirteen weighers as a plain loop: a list of raw numbers for each, normalized over the hosts and added up."""

from benchmarks.fleet_of_pools import GROUPS, PlainFleet, PlainHost
from redsched.model import Request

Numbers = list[float]


def nova_scores(fleet: PlainFleet, request: Request, hosts: list[PlainHost]) -> Numbers:
    """Return the sums of all weighers of hosts that fit, added in the order of their names so that floats are equal."""
    totals = [0.0] * len(hosts)
    for multiplier, values in (
        (-1_000_000.0, normalized([float(host.failures) for host in hosts])),
        (1.0, normalized([float(host.left["VCPU"]) for host in hosts], 0.0)),
        (1_000_000.0, _cross_cell(fleet, request, hosts)),
        (1.0, normalized([float(host.left["DISK_GB"]) for host in hosts], 0.0)),
        (1.0, normalized([_version(host.labels["hypervisor_version"]) for host in hosts])),
        (0.5, normalized([_properties(host, request) for host in hosts])),
        (-1.0, normalized([float(host.starting) for host in hosts], 0.0)),
        (1.0, normalized([-host.cpu_percent for host in hosts])),
        (-0.5, normalized([float(host.claims) for host in hosts])),
        (1.0, normalized([100.0 - min(99, max(0, host.left["SRIOV_NET_VF"])) for host in hosts])),
        (1.0, normalized([float(host.left["MEMORY_MB"]) for host in hosts], 0.0)),
        (1.0, normalized(_members(fleet, request, "soft-affinity", 1.0, hosts))),
        (1.0, normalized(_members(fleet, request, "soft-anti-affinity", -1.0, hosts))),
    ):
        totals = [total + multiplier * value for total, value in zip(totals, values, strict=True)]
    return totals


def normalized(values: Numbers, lowest: float | None = None) -> Numbers:
    """Normalize values to 0..1 between the lowest and the highest."""
    if lowest is not None:
        values = [max(lowest, value) for value in values]
    low, high = min(values, default=0.0) if lowest is None else lowest, max(values, default=0.0)
    return [(value - low) / (high - low) for value in values] if high > low else [0.0] * len(values)


def _cross_cell(fleet: PlainFleet, request: Request, hosts: list[PlainHost]) -> Numbers:
    here = any(name in fleet.hosts for name in request.exclude_hosts)
    return [0.0 if not request.exclude_hosts else 1.0 if here else -1.0] * len(hosts)


def _version(text: str) -> float:
    number = 0
    for part in text.split("."):
        number = number * 1000 + int(part)
    return float(number)


def _properties(host: PlainHost, request: Request) -> float:
    return float(sum(host.labels.get(key) == value for key, value in request.properties.items()))


def _members(fleet: PlainFleet, request: Request, policy: str, sign: float, hosts: list[PlainHost]) -> Numbers:
    if GROUPS[request.server_group][0] != policy:
        return [0.0] * len(hosts)
    held = fleet.counts[request.server_group]["host"]
    return [sign * held.get(host.name, 0) for host in hosts]
