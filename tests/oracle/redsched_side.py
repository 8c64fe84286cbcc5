"""Cases in redsched's terms: what docs/comparison.md tells people who come from Nova to write instead."""

import math
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.scoring.hosts import version_number
from redsched.errors import InvalidRequest
from redsched.model import CpuPolicy, Hints, Numa, NumaAffinity, NumaCell, PciDevices, Request
from redsched.settings import Settings
from tests.oracle.cases.filters import Block, Host, Spec
from tests.support.builders.columns import columns_of

IN_SERVICE = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1", "zone": "az1", "capacity.VCPU": "99"}
VCPU = {"VCPU": 1}
THREADS = "HW_CPU_HYPERTHREADING"
REFUSED = "r"
VARIABLES = {
    "$free_ram_mb": "$free.MEMORY_MB",
    "$num_instances": "$claims",
    "$num_io_ops": "$starting",
    "$stats.rack": "$label.rack",
}


def filter_verdicts(block: Block) -> list[str]:
    """Return for each request a character for each host: 1 passes, 0 does not, r is a request that is invalid."""
    columns = columns_for(block)
    decider = Decider(columns, settings_for(block))
    return [_verdict(decider, columns, block, spec) for spec in block.specs]


def _verdict(decider: Decider, columns: Columns, block: Block, spec: Spec) -> str:
    hosts = [f"h{number}" for number in range(len(block.hosts))]
    try:
        _declare_group(columns, block, spec)
        decision = decider.decide(request_for(block, spec), Random(0))
    except InvalidRequest:
        return REFUSED * len(hosts)
    passing = {place.chosen.host for place in decision.places}.union(decision.alternates)
    return "".join(str(int(host in passing)) for host in hosts)


def settings_for(block: Block) -> Settings:
    """Return the settings that say what Nova's configuration says."""
    conf = block.conf
    if block.filter == "MetricsFilter":
        pairs = (one.split("=") for one in conf["weight_setting"])
        return Settings(pick_from=1, metrics_required=True, metrics_weights={name: float(x) for name, x in pairs})
    return Settings(
        pick_from=1,
        max_claims_per_host=conf.get("max_instances_per_host", 0),
        max_starting_per_host=conf.get("max_io_ops_per_host", 0),
    )


# Hosts


def columns_for(block: Block) -> Columns:
    """Return the hosts and aggregates of a block."""
    columns = columns_of(**{f"h{number}": fields_of(host) for number, host in enumerate(block.hosts)})
    for name, metadata in block.aggregates.items():
        said = {f"meta.{key}": text for key, text in _metadata(block, name, metadata)}
        columns.declared.put("aggregate", name, {"version": "1"} | said)
    return columns


def fields_of(host: Host) -> dict[str, str]:
    """Return a host's fields in the store."""
    return {
        **IN_SERVICE,
        "status": "enabled" if host.get("enabled", True) else "disabled",
        "alive": str(int(host.get("up", True))),
        "claims": str(host.get("num_instances", 0)),
        "starting": str(host.get("num_io_ops", 0)),
        **{f"aggregate.{name}": "1" for name in host.get("aggregates", ())},
        **{f"label.{key}": text for key, text in _labels(host)},
        **{f"metric.{name}": str(value) for name, value in host.get("metrics", {}).items()},
        "failures": str(host.get("failures", 0)),
        **amounts_of(host),
        **dict(_nodes(host)),
        **dict(_devices(host)),
    }


def _labels(host: Host) -> Iterator[tuple[str, str]]:
    yield from host.get("stats", {}).items()
    yield from host.get("image", {}).items()
    yield "ip", host.get("host_ip", "10.0.0.1")
    if host.get("supported"):
        yield "supported_instances", ",".join("/".join(one) for one in host["supported"])
    if host.get("hypervisor_version"):
        yield "hypervisor_version", str(host["hypervisor_version"])


def amounts_of(host: Host) -> dict[str, str]:
    """Return the fields of memory, CPUs and disk, each given as [total, used, ratio]."""
    fields: dict[str, str] = {}
    for key, name in (("ram", "MEMORY_MB"), ("cpu", "VCPU"), ("disk", "DISK_GB")):
        if key in host:
            fields |= slot(name, *host[key])
    return fields


def slot(name: str, total: int, used: int, ratio: float = 1.0) -> dict[str, str]:
    """Return the fields of one slot, as an agent reports them."""
    return {
        f"capacity.{name}": str(math.floor(total * ratio)),
        f"max.{name}": str(total),
        f"claimed.{name}": str(used),
        f"ratio.{name}": str(ratio),
    }


def _nodes(host: Host) -> Iterator[tuple[str, str]]:
    nodes = host.get("numa", ())
    for number, node in enumerate(nodes):
        pool = f"numa{number}"
        yield f"pool.{pool}", "/"
        yield f"trait.{pool}/HW_NUMA_ROOT", "1"
        if "socket" in node:
            yield f"trait.{pool}/CUSTOM_SOCKET_{node['socket']}", "1"
        yield from slot(f"{pool}/VCPU", node["shared"], node["shared_used"], host.get("cpu_ratio", 1.0)).items()
        yield from slot(f"{pool}/PCPU", node["dedicated"], node["dedicated_used"]).items()
        memory = node["memory"], node["memory_used"], host.get("memory_ratio", 1.0)
        yield from slot(f"{pool}/MEMORY_MB", *memory).items()
        if "pages" in node:
            yield from slot(f"{pool}/CUSTOM_HUGE_PAGES_2048KB", *node["pages"]).items()
        if node["threads"] > 1:
            yield f"trait.{THREADS}", "1"


def _devices(host: Host) -> Iterator[tuple[str, str]]:
    for number, (product, count, node) in enumerate(host.get("pci", ())):
        yield f"pool.pci{number}", "/" if node is None else f"numa{node}"
        yield from slot(f"pci{number}/{device_class(product)}", count, 0).items()


def device_class(product: str) -> str:
    """Return the resource class of a device."""
    return f"CUSTOM_PCI_8086_{product.upper()}"


def _metadata(block: Block, name: str, metadata: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if block.filter == "AggregateImagePropertiesIsolation":
        yield from ((f"property:{key}", text) for key, text in metadata.items())
    elif block.filter == "IsolatedHostsFilter" and name == "isolated":
        images = ",".join(block.conf["isolated_images"])
        yield "property-confined:image", images
        if block.conf["restrict_isolated_hosts_to_isolated_images"]:
            yield "property-required:image", images
    else:
        yield from metadata.items()


def _declare_group(columns: Columns, block: Block, spec: Spec) -> None:
    if "group" in spec:
        members = {f"h{number}": host["members"] for number, host in enumerate(block.hosts) if host.get("members")}
        columns.declared.put("server-group", "g", group_fields(spec["group"], members))


def group_fields(group: Mapping[str, Any], members: Mapping[str, int]) -> dict[str, str]:
    """Return the fields of a server group with so many members on hosts."""
    counts = {f"count.host={host}": str(number) for host, number in members.items()}
    fields = {"version": "1", "policy": group["policy"], "members": str(sum(members.values()))} | counts
    return fields | ({"max_per_host": str(group["max"])} if group["max"] > 1 else {})


# Requests


def request_for(block: Block, spec: Spec) -> Request:
    """Return a request. Raises InvalidRequest for one that redsched does not accept."""
    asked = dict(_asked(block.filter, spec))
    return Request(**({"resources": VCPU} | asked), alternates=50)


def _asked(name: str, spec: Spec) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a request."""
    if name == "ComputeCapabilitiesFilter":
        yield "labels", _unscoped(spec["extra"])
    elif name == "AggregateInstanceExtraSpecsFilter":
        yield "aggregate_metadata", _unscoped(spec["extra"])
    elif name == "AggregateImagePropertiesIsolation":
        yield "properties", spec["image"]
    elif name == "IsolatedHostsFilter":
        yield "properties", {"image": spec["image_id"]} if "image_id" in spec else {}
    elif name == "AggregateTypeAffinityFilter":
        yield "properties", {"instance_type": spec["flavor"]}
    elif name == "ImagePropertiesFilter":
        yield "labels", dict(_image_labels(spec["image"]))
    yield "project", spec.get("project", "blue")
    if "group" in spec:
        yield "server_group", "g"
    yield from _hinted(spec.get("hints", {}))
    yield from _guest(spec)
    if "pci" in spec:
        yield "pci", tuple(PciDevices(device_class(one), count, NumaAffinity(how)) for one, count, how in spec["pci"])


def _unscoped(extra: Mapping[str, str]) -> dict[str, str]:
    return {key.partition(":")[2]: text for key, text in extra.items()}


def _image_labels(image: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    wanted = [image.get(key, "*") for key in ("hw_architecture", "img_hv_type", "hw_vm_mode")]
    if wanted == ["*", "*", "*"]:  # then Nova does not look at the version either
        return
    yield "supported_instances", f"<like> {'/'.join(wanted)}"
    if version := image.get("img_hv_requested_version"):
        sign = version.rstrip("0123456789.")
        yield "hypervisor_version", f"{sign} {version_number(version[len(sign) :]):.0f}"


def _hinted(hints: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if "query" in hints:
        yield "query", _query(hints["query"])
    elif hints:
        yield "hints", Hints(**hints)


def _query(query: Any) -> Any:
    if isinstance(query, list):
        return tuple(map(_query, query))
    return VARIABLES.get(query, query) if isinstance(query, str) else query


def _guest(spec: Spec) -> Iterator[tuple[str, Any]]:
    guest = spec.get("numa")
    if guest is None:
        return
    yield "resources", {}
    mixed = guest["policy"] == "mixed"
    cells = tuple(NumaCell(cpus, memory, dedicated if mixed else 0) for cpus, memory, dedicated in guest["cells"])
    yield "numa", Numa(cells, CpuPolicy(guest["policy"]), guest.get("page_kb"))
    if guest.get("thread_policy") == "require":
        yield "required", frozenset({THREADS})
    elif guest.get("thread_policy") == "isolate":
        yield "forbidden", frozenset({THREADS})
