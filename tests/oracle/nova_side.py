"""Cases as Nova's own objects, and the verdicts of its filters and weighers on them. Needs Nova; loads it on demand."""

import importlib
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from tests.oracle.cases.filters import Block, Host, Spec
from tests.oracle.cases.weighers import Fleet
from tests.oracle.nova_numa import host_topology, pci_pools, pci_requests, requested_topology

CELL = "00000000-0000-4000-8000-00000000ce11"
UNLIMITED = {"cpu_allocation_ratio": 1.0, "ram_allocation_ratio": 1.0, "disk_allocation_ratio": 1.0}


def uuid_of(kind: int, *numbers: int) -> str:
    """Return a UUID made of numbers."""
    first, second = (*numbers, 0, 0)[:2]
    return f"{kind:08d}-0000-4000-8000-{first:06d}{second:06d}"


def load(name: str) -> Any:
    """Return a module of Nova."""
    return importlib.import_module(name)


def start() -> str:
    """Configure Nova without any file, and return its version."""
    load("nova.conf").CONF([], project="nova", default_config_files=[])
    load("nova.objects").register_all()
    return version("nova")


@contextmanager
def configured(conf: dict[str, Any], group: str = "filter_scheduler") -> Iterator[None]:
    """Set options of Nova for a while."""
    nova = load("nova.conf").CONF
    for name, value in conf.items():
        nova.set_override(name, value, group)
    yield
    for name in conf:
        nova.clear_override(name, group)


# Hosts


def host_state(number: int, host: Host, aggregates: dict[str, dict[str, str]]) -> Any:
    """Return Nova's HostState of a host."""
    objects = load("nova.objects")
    name = f"h{number}"
    state = load("nova.scheduler.host_manager").HostState(name, name, host.get("cell", CELL))
    state._update_from_compute_node(_compute_node(number, host))
    state.service = {"disabled": not host.get("enabled", True), "up": host.get("up", True)}
    state.allocation_candidates = [{"allocations": {}, "mappings": {}}]
    state.aggregates = [
        objects.Aggregate(metadata=dict(aggregates[one]), name=one) for one in host.get("aggregates", ())
    ]
    if "image" in host:
        image = objects.ImageMeta.from_dict({"properties": dict(host["image"])})
        state.instances = {uuid_of(8, number): SimpleNamespace(image_meta=image)}
        return state
    members = {uuid_of(7, number, one): None for one in range(host.get("members", 0))}
    state.instances = members | {uuid_of(8, number, one): None for one in range(2)}
    return state


def _compute_node(number: int, host: Host) -> Any:
    objects = load("nova.objects")
    topology = host_topology(host) if "numa" in host else None
    return objects.ComputeNode(
        uuid=uuid_of(1, number),
        host=f"h{number}",
        hypervisor_hostname=f"h{number}",
        updated_at=None,
        **_amounts(host),
        numa_topology=None if topology is None else topology._to_json(),
        pci_device_pools=pci_pools(host["pci"]) if "pci" in host else None,
        host_ip=host.get("host_ip", "10.0.0.1"),
        hypervisor_type="QEMU",
        hypervisor_version=host.get("hypervisor_version", 0),
        cpu_info="{}",
        supported_hv_specs=[objects.HVSpec.from_list(one) for one in host.get("supported", ())],
        stats=_stats(host),
        metrics=json.dumps([_metric(name, value) for name, value in host.get("metrics", {}).items()]),
    )


def _amounts(host: Host) -> dict[str, Any]:
    """Return the amounts as Nova's resource tracker computes them: what is free has no allocation ratio."""
    memory, memory_used, memory_ratio = host.get("ram", [0, 0, host.get("memory_ratio", 1.0)])
    cpus, cpus_used, cpu_ratio = host.get("cpu", [0, 0, host.get("cpu_ratio", 1.0)])
    disk, disk_used, disk_ratio = host.get("disk", [0, 0, 1.0])
    ratios = {"cpu": cpu_ratio, "ram": memory_ratio, "disk": disk_ratio}
    return {
        "memory_mb": memory,
        "memory_mb_used": memory_used,
        "free_ram_mb": memory - memory_used,
        "vcpus": cpus,
        "vcpus_used": cpus_used,
        "local_gb": disk,
        "local_gb_used": disk_used,
        "free_disk_gb": disk - disk_used,
        "disk_available_least": None,
        **{f"{name}_allocation_ratio": ratio for name, ratio in ratios.items()},
    }


def _stats(host: Host) -> dict[str, str]:
    numbers = {"num_instances": "num_instances", "num_io_ops": "io_workload", "failures": "failed_builds"}
    counted = {stat: str(host[key]) for key, stat in numbers.items() if key in host}
    return {**counted, **host.get("stats", {})}


def _metric(name: str, value: float) -> dict[str, Any]:
    return {"name": name, "value": value, "timestamp": "2026-01-01T00:00:00", "source": "virt"}


# Requests


def request_spec(spec: Spec, hosts: list[Host]) -> Any:
    """Return Nova's RequestSpec. `hosts` are those on which members of its group are."""
    objects = load("nova.objects")
    numa, pci = spec.get("numa"), spec.get("pci")
    return objects.RequestSpec(
        flavor=_flavor(spec),
        image=_image(spec),
        project_id=spec.get("project", "blue"),
        user_id="user",
        instance_uuid=uuid_of(9),
        scheduler_hints={name: [_hint(value)] for name, value in spec.get("hints", {}).items()},
        instance_group=_group(spec["group"], hosts) if "group" in spec else None,
        numa_topology=requested_topology(numa) if numa else None,
        pci_requests=pci_requests(pci) if pci else None,
        requested_destination=_destination(spec.get("from_cell")),
    )


def _flavor(spec: Spec) -> Any:
    guest = spec.get("numa") or {}
    extra = dict(spec.get("extra", {}))
    if guest.get("thread_policy"):
        extra |= {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": guest["thread_policy"]}
    name = spec.get("flavor", "m1.small")
    amounts = {"vcpus": 1, "memory_mb": 1, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    return load("nova.objects").Flavor(id=1, flavorid="1", name=name, extra_specs=extra, **amounts)


def _image(spec: Spec) -> Any:
    named = {"id": spec["image_id"]} if "image_id" in spec else {}
    return load("nova.objects").ImageMeta.from_dict({"properties": dict(spec.get("image", {})), **named})


def _hint(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _group(group: dict[str, Any], hosts: list[Host]) -> Any:
    members = [uuid_of(7, number, one) for number, host in enumerate(hosts) for one in range(host.get("members", 0))]
    return load("nova.objects").InstanceGroup(
        uuid=uuid_of(6),
        policy=group["policy"],
        policies=[group["policy"]],
        rules={"max_server_per_host": group["max"]} if group["policy"] == "anti-affinity" else {},
        members=members,
        hosts=[f"h{number}" for number, host in enumerate(hosts) if host.get("members")],
    )


def _destination(cell: str | None) -> Any:
    objects = load("nova.objects")
    if cell is None:
        return None
    return objects.Destination(cell=objects.CellMapping(uuid=cell), allow_cross_cell_move=True)


# Verdicts


def filter_verdicts(block: Block) -> list[str]:
    """Return for each request a character for each host: 1 passes, 0 does not, e is an error.

    o is a guest that passes if its cells are given in the reverse order, and not in the given one.
    """
    conf = dict(block.conf)
    if block.filter == "IsolatedHostsFilter":
        hosts = [f"h{number}" for number, host in enumerate(block.hosts) if "isolated" in host.get("aggregates", ())]
        conf["isolated_hosts"] = hosts
    group = "metrics" if block.filter == "MetricsFilter" else "filter_scheduler"
    with configured(conf, group):
        one = _filter(block.filter)
        return [_verdict(one, block, spec) for spec in block.specs]


def _filter(name: str) -> Any:
    classes = {one.__name__: one for one in load("nova.scheduler.filters").all_filters()}
    one = classes[name]()
    if name == "ComputeFilter":
        one.servicegroup_api = SimpleNamespace(service_is_up=lambda service: service["up"])
    return one


def _verdict(one: Any, block: Block, spec: Spec) -> str:
    verdicts = [_passes(one, block, spec, number) for number in range(len(block.hosts))]
    guest = spec.get("numa")
    if guest and len(guest["cells"]) > 1:
        other = spec | {"numa": guest | {"cells": guest["cells"][::-1]}}
        for number, verdict in enumerate(verdicts):
            if verdict == "0" and _passes(one, block, other, number) == "1":
                verdicts[number] = "o"
    return "".join(verdicts)


def _passes(one: Any, block: Block, spec: Spec, number: int) -> str:
    # Built anew for each host, because filters write to requests.
    state, request = host_state(number, block.hosts[number], block.aggregates), request_spec(spec, block.hosts)
    try:
        return str(int(bool(one.host_passes(state, request))))
    except Exception:  # whatever the filter raises refuses the whole request
        return "e"


def weights(fleet: Fleet) -> list[float]:
    """Return the weight of each host of a fleet, multiplier included, as Nova's handler computes it."""
    with configured(fleet.conf), configured(fleet.metrics_conf, "metrics"):
        weigher = _weigher(fleet)
        states = [host_state(number, host, fleet.aggregates) for number, host in enumerate(fleet.hosts)]
        handler = load("nova.scheduler.weights").HostWeightHandler()
        found = handler.get_weighed_objects([weigher], states, request_spec(fleet.spec, fleet.hosts))
    by_host = {one.obj.host: one.weight for one in found}
    values = [by_host[f"h{number}"] for number in range(len(states))]
    assert all(math.isfinite(value) for value in values), (fleet, values)
    return [round(value, 9) for value in values]


def _weigher(fleet: Fleet) -> Any:
    classes = {one.__name__: one for one in load("nova.scheduler.weights").HostWeightHandler().get_all_classes()}
    if fleet.weigher == "ImagePropertiesWeigher":
        _read_instances_of_hosts(load("nova.scheduler.weights.image_props"))
    return classes[fleet.weigher]()


class _Instances(list[Any]):
    """Stands for Nova's InstanceList, of which the weigher fills in what the database has."""

    def __init__(self, _context: Any, objects: Any) -> None:
        super().__init__(objects)

    def fill_metadata(self) -> None:
        """Do nothing: the instances are complete."""


def _read_instances_of_hosts(module: Any) -> None:
    """Have the weigher of images read the instances of the host states, and not Nova's database."""
    cells = SimpleNamespace(get_by_uuid=lambda _context, _uuid: None)
    module.objects = SimpleNamespace(CellMapping=cells, InstanceList=_Instances)
    module.nova_context = SimpleNamespace(
        get_admin_context=lambda: None, target_cell=lambda _context, _cell: nullcontext()
    )
