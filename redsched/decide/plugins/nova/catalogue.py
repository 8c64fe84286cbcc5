"""What Nova's own filters and weighers do here: which run, which are refused and why, and what redsched has instead.

Tried with Nova 34.0.0. docs/howto/nova-code.md has the same table; a test compares them with each other and with Nova.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from redsched.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class NovaClass:
    """A class of Nova: its module, what to use of redsched instead, and why it is refused ('' if it runs)."""

    module: str
    native: str
    refused: str = ""


_CLAIMS = "schedulers know how many claims a host has, but not their ids; the hint is applied to every request anyway"

FILTERS: Mapping[str, NovaClass] = {
    "AggregateImagePropertiesIsolation": NovaClass(
        "aggregate_image_properties_isolation", "metadata property:<key> of aggregates"
    ),
    "AggregateInstanceExtraSpecsFilter": NovaClass("aggregate_instance_extra_specs", "aggregate_metadata"),
    "AggregateIoOpsFilter": NovaClass("io_ops_filter", "metadata max_starting_per_host of aggregates"),
    "AggregateMultiTenancyIsolation": NovaClass(
        "aggregate_multitenancy_isolation", "metadata filter_tenant_id of aggregates"
    ),
    "AggregateNumInstancesFilter": NovaClass("num_instances_filter", "metadata max_claims_per_host of aggregates"),
    "AggregateTypeAffinityFilter": NovaClass("type_filter", "metadata instance_type of aggregates"),
    "AllHostsFilter": NovaClass("all_hosts_filter", "nothing"),
    "ComputeCapabilitiesFilter": NovaClass("compute_capabilities_filter", "labels"),
    "ComputeFilter": NovaClass("compute_filter", "nothing: hosts that are down or disabled are always left out"),
    "DifferentHostFilter": NovaClass("affinity_filter", "hints.different_host", _CLAIMS),
    "ImagePropertiesFilter": NovaClass("image_props_filter", "labels"),
    "IoOpsFilter": NovaClass("io_ops_filter", "REDSCHED_MAX_STARTING_PER_HOST"),
    "IsolatedHostsFilter": NovaClass(
        "isolated_hosts_filter", "metadata property-required:image and property-confined:image of aggregates"
    ),
    "JsonFilter": NovaClass(
        "json_filter", "query", "a request has no hint query; its field query has the same syntax and other variables"
    ),
    "MetricsFilter": NovaClass("metrics_filter", "REDSCHED_METRICS_REQUIRED"),
    "NUMATopologyFilter": NovaClass("numa_topology_filter", "numa"),
    "NumInstancesFilter": NovaClass("num_instances_filter", "REDSCHED_MAX_CLAIMS_PER_HOST"),
    "PciPassthroughFilter": NovaClass("pci_passthrough_filter", "pci"),
    "SameHostFilter": NovaClass("affinity_filter", "hints.same_host", _CLAIMS),
    "ServerGroupAffinityFilter": NovaClass("affinity_filter", "server_group with the policy affinity"),
    "ServerGroupAntiAffinityFilter": NovaClass("affinity_filter", "server_group with the policy anti-affinity"),
    "SimpleCIDRAffinityFilter": NovaClass("affinity_filter", "hints.build_near_host_ip and hints.cidr"),
}
"""The filters of Nova by name; `native` is a field of requests unless it says otherwise."""

WEIGHERS: Mapping[str, NovaClass] = {
    "BuildFailureWeigher": NovaClass("compute", "build_failure"),
    "CPUWeigher": NovaClass("cpu", "cpu"),
    "CrossCellWeigher": NovaClass(
        "cross_cell", "cross_cell", "a class weighs the hosts of one cell at a time, for which its value is the same"
    ),
    "DiskWeigher": NovaClass("disk", "disk"),
    "HypervisorVersionWeigher": NovaClass("hypervisor_version", "hypervisor_version"),
    "ImagePropertiesWeigher": NovaClass(
        "image_props", "image_props", "it reads the images of instances from Nova's database"
    ),
    "IoOpsWeigher": NovaClass("io_ops", "io_ops"),
    "MetricsWeigher": NovaClass("metrics", "metrics"),
    "NumInstancesWeigher": NovaClass("num_instances", "num_instances"),
    "PCIWeigher": NovaClass("pci", "pci"),
    "RAMWeigher": NovaClass("ram", "ram"),
    "ServerGroupSoftAffinityWeigher": NovaClass("affinity", "soft_affinity"),
    "ServerGroupSoftAntiAffinityWeigher": NovaClass("affinity", "soft_anti_affinity"),
}
"""The weighers of Nova by name; `native` is a weigher of redsched."""

FILTER_PACKAGE, WEIGHER_PACKAGE = "nova.scheduler.filters", "nova.scheduler.weights"
_PACKAGES = {FILTER_PACKAGE: FILTERS, WEIGHER_PACKAGE: WEIGHERS}


def path_of(package: str, name: str) -> str:
    """Return the import path of a class of Nova, in FILTER_PACKAGE or WEIGHER_PACKAGE."""
    return f"{package}.{_PACKAGES[package][name].module}.{name}"


_REFUSED = {
    path_of(package, name): one
    for package, classes in _PACKAGES.items()
    for name, one in classes.items()
    if one.refused
}


def refuse_known(setting: str, path: str, decides: str) -> None:
    """Raise InvalidRequest if a class decides by one of Nova's that cannot run here, by whose import path `decides` is.

    `path` is the import path that `setting` names.
    """
    one = _REFUSED.get(decides)
    if one is not None:
        name = decides.rpartition(".")[2]
        raise InvalidRequest(
            f"{setting} names {path!r}, which decides by Nova's {name}; that cannot run here, because "
            f"{one.refused}: remove it, use {one.native}"
        )
