"""RequestSpec: the attributes of a request that Nova's classes read."""

from collections.abc import Callable, Mapping
from typing import Any

from redsched.cache.columns import Columns
from redsched.decide.plugins.nova.host_state import member_ids
from redsched.decide.plugins.nova.lazy_object import LazyObject, constant, make_object
from redsched.decide.scoring.demand import demand
from redsched.model import GroupPolicy, Request

IMAGE = "image"
"""The property with the id of the image."""
_IN_FLAVOR = ("VCPU", "MEMORY_MB", "DISK_GB")


class RequestSpec(LazyObject):
    """One place of a request, tried in a cell: read from `_request` and `_columns`."""

    _kind = "RequestSpec"
    _request: Request
    _columns: Columns

    def get_scheduler_hint(self, hint_name: str, default: Any = None) -> Any:
        """Return a hint: a text if there is one value, a list if there are several, as in Nova."""
        found = self.scheduler_hints.get(hint_name, default)
        return found[0] if isinstance(found, list) and len(found) == 1 else found

    def obj_clone(self) -> "RequestSpec":
        """Return a copy that may be modified."""
        return type(self)(_request=self._request, _columns=self._columns)


class ImageProperties(LazyObject):
    """The properties of the request, as those of an image."""

    _kind = "ImageMetaProps"

    def get(self, name: str, default: Any = None) -> Any:
        """Return a property, else the default."""
        return self.__dict__.get(name, default)

    def to_dict(self) -> dict[str, Any]:
        """Return all properties."""
        return dict(self.__dict__)


def _flavor(spec: RequestSpec) -> LazyObject:
    amounts, properties = demand(spec._request), spec._request.properties
    name = properties.get("flavor", "") or properties.get("instance_type", "")
    return make_object(
        "Flavor",
        name=name,
        flavorid=name,
        vcpus=amounts.get("VCPU", 0) + amounts.get("PCPU", 0),
        memory_mb=_memory_mb(spec._request),
        root_gb=amounts.get("DISK_GB", 0),
        ephemeral_gb=0,
        swap=0,
        extra_specs=_extra_specs(spec._request),
    )


def _memory_mb(request: Request) -> int:
    """Return the requested memory, from MEMORY_MB or huge pages."""
    pages = request.numa if request.numa and request.numa.page_size_kb is not None else None
    return demand(request).get("MEMORY_MB", 0) + sum(cell.memory_mb for cell in (pages.cells if pages else ()))


def _extra_specs(request: Request) -> dict[str, str]:
    """Return what Nova's flavours have in extra specs, in Nova's spelling."""
    specs = {f"resources:{name}": str(n) for name, n in demand(request).items() if name not in _IN_FLAVOR}
    specs |= {f"trait:{name}": "required" for name in request.required}
    specs |= {f"trait:{name}": "forbidden" for name in request.forbidden}
    # "" means that the host does not have the label, which no extra spec can say.
    specs |= {f"capabilities:{key}": text for key, text in request.labels.items() if text}
    specs |= {f"aggregate_instance_extra_specs:{key}": text for key, text in request.aggregate_metadata.items()}
    if request.numa:
        specs |= {"hw:numa_nodes": str(len(request.numa.cells)), "hw:cpu_policy": str(request.numa.policy)}
    return specs


def _instance_group(spec: RequestSpec) -> LazyObject | None:
    """Return the server group; None if it counts by zone or label, which groups in Nova do not."""
    name = spec._request.server_group
    state = spec._columns.declared.groups.get(name)
    if state is None or state.group.by != "host":
        return None
    hosts = list(state.counts("host"))
    policy = str(state.group.policy)
    return make_object(
        "InstanceGroup",
        uuid=name,
        name=name,
        policy=policy,
        policies=[policy],
        rules={"max_server_per_host": state.group.max_per_host} if policy == GroupPolicy.ANTI_AFFINITY else {},
        hosts=hosts,
        members=[one for host in hosts for one in member_ids(spec._columns, name, host)],
    )


def _scheduler_hints(spec: RequestSpec) -> dict[str, list[str]]:
    hints = spec._request.hints
    found = {
        "same_host": sorted(hints.same_host),
        "different_host": sorted(hints.different_host),
        "build_near_host_ip": [hints.build_near_host_ip] if hints.build_near_host_ip else [],
        "cidr": ["/" + hints.cidr.lstrip("/")] if hints.cidr else [],
        "group": [spec._request.server_group] if spec._request.server_group else [],
    }
    return {name: texts for name, texts in found.items() if texts}


def _pci_requests(spec: RequestSpec) -> LazyObject | None:
    devices = [
        make_object("InstancePCIRequest", count=one.count, resource_class=one.resource_class)
        for one in spec._request.pci
    ]
    return make_object("InstancePCIRequests", requests=devices) if devices else None


def _image(spec: RequestSpec) -> LazyObject:
    properties = spec._request.properties
    return make_object("ImageMeta", id=properties.get(IMAGE), name=None, properties=ImageProperties(**properties))


_READERS: Mapping[str, Callable[[RequestSpec], Any]] = {
    "flavor": _flavor,
    "vcpus": lambda spec: spec.flavor.vcpus,
    "memory_mb": lambda spec: spec.flavor.memory_mb,
    "root_gb": lambda spec: spec.flavor.root_gb,
    "ephemeral_gb": constant(0),
    "swap": constant(0),
    "image": _image,
    "project_id": lambda spec: spec._request.project or None,
    "user_id": lambda spec: spec._request.consumer or None,
    "availability_zone": lambda spec: next(iter(spec._request.zones)) if len(spec._request.zones) == 1 else None,
    "num_instances": lambda spec: spec._request.count,
    "instance_uuid": lambda spec: next(iter(spec._request.claim_ids), None),
    "instance_group": _instance_group,
    "scheduler_hints": _scheduler_hints,
    "ignore_hosts": lambda spec: sorted(spec._request.exclude_hosts),
    "force_hosts": lambda spec: sorted(spec._request.hosts),
    "force_nodes": constant([]),
    "root_required": lambda spec: set(spec._request.root_required),
    "root_forbidden": lambda spec: set(spec._request.root_forbidden),
    "same_subtree": lambda spec: [set(names) for names in spec._request.same_subtree],
    "pci_requests": _pci_requests,
    "numa_topology": constant(None),
    "requested_destination": constant(None),
    "requested_resources": constant([]),
    "requested_networks": constant([]),
    "security_groups": constant([]),
    "is_bfv": constant(False),
    "limits": constant(None),
    "retry": constant(None),
}
RequestSpec._readers = _READERS
