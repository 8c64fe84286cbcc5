"""Hosts and requests as Nova itself has them: its own HostState and RequestSpec, for comparison with our stand-ins.

Only for tests that run where Nova is installed. Nova has no types, hence all the `Any`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

Metadata = Mapping[str, str]
GROUP = "5f1d0a4e-0a0b-4a57-8a49-2a1b3c4d5e6f"
NEW = "0b1c7a52-93f8-4b7e-8a55-2f6f2e4bbd3e"


def objects() -> Any:
    """Return `nova.objects`, with all objects registered."""
    module = import_module("nova.objects")
    module.register_all()
    return module


def host_state(name: str = "h1", **given: Any) -> Any:
    """Return a HostState as Nova makes it of a compute node that is up, with these attributes changed."""
    state = import_module("nova.scheduler.host_manager").HostState(name, name, "cell")
    defaults = {"stats": {}, "metrics": [], "supported_instances": [], "service": service()}
    for attribute, value in {**defaults, **given}.items():
        setattr(state, attribute, value)
    return state


def service(silent_s: int = 0, **given: Any) -> Any:
    """Return the service of a host as Nova has it, last seen this many seconds ago."""
    seen = datetime.now(UTC) - timedelta(seconds=silent_s)
    return {"host": "h1", "disabled": False, "forced_down": False, "last_seen_up": seen, "created_at": seen, **given}


def aggregates(**metadata: Metadata) -> list[Any]:
    """Return aggregates with these metadata, by name."""
    return [objects().Aggregate(name=name, metadata=dict(values)) for name, values in metadata.items()]


def instances(*uuids: str) -> dict[str, Any]:
    """Return the instances of a host by their ids."""
    return {uuid: objects().Instance(uuid=uuid) for uuid in uuids}


def metrics(**values: float) -> list[Any]:
    """Return metrics of a host. Nova allows only its own names in objects, but reads no more than names and values."""
    return [type("MonitorMetric", (), {"name": name, "value": value})() for name, value in values.items()]


def pci_stats(pools: list[dict[str, Any]]) -> Any:
    """Return the devices of a host."""
    stats = import_module("nova.pci.stats")
    made = stats.PciDeviceStats(None, dev_filter=stats.whitelist.Whitelist([]))
    made.pools = [{"dev_type": "type-VF", "devices": [], **one} for one in pools]
    return made


def spec(
    extra_specs: Mapping[str, str] | None = None,
    flavor: str = "m1.small",
    image: Mapping[str, Any] | None = None,
    hints: Mapping[str, list[str]] | None = None,
    group: Mapping[str, Any] | None = None,
    **given: Any,
) -> Any:
    """Return a RequestSpec as Nova makes it, of an instance in no group unless `group` is given."""
    made = objects()
    return made.RequestSpec(
        flavor=made.Flavor(name=flavor, vcpus=1, memory_mb=512, root_gb=0, extra_specs=dict(extra_specs or {})),
        image=made.ImageMeta.from_dict(dict(image or {})),
        scheduler_hints=dict(hints or {}),
        instance_group=made.InstanceGroup(uuid=GROUP, **group) if group else None,
        instance_uuid=NEW,
        **{"project_id": None, "numa_topology": None, "pci_requests": None, "requested_destination": None, **given},
    )


def group(policy: str, hosts: list[str], members: list[str], **rules: int) -> dict[str, Any]:
    """Return the fields of an InstanceGroup; the filter for affinity reads the older `policies`."""
    texts = {name: str(number) for name, number in rules.items()}
    return {"policy": policy, "policies": [policy], "hosts": hosts, "members": members, "rules": texts}
