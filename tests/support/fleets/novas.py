"""Filter and weigher classes like Nova's, to be named by import path: they do not depend on redsched."""

from typing import Any


class BaseFilter:
    """Like Nova's base class: `filter_all` calls the filter for each host, and is a generator."""

    RUN_ON_REBUILD = False
    run_filter_once_per_request = True

    def _filter_one(self, obj: Any, spec: Any) -> bool:
        # Like nova.scheduler.utils.request_is_rebuild.
        if "scheduler_hints" in spec and spec.scheduler_hints.get("_nova_check_type") == ["rebuild"]:
            return True
        return bool(self.host_passes(obj, spec))

    def filter_all(self, filter_obj_list: Any, spec_obj: Any) -> Any:
        for obj in filter_obj_list:
            if self._filter_one(obj, spec_obj):
                yield obj

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        raise NotImplementedError


class RamFilter(BaseFilter):
    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        usable = host_state.total_usable_ram_mb * host_state.ram_allocation_ratio
        used = host_state.total_usable_ram_mb - host_state.free_ram_mb
        host_state.limits["memory_mb"] = usable
        return bool(usable - used >= spec_obj.memory_mb)


class TenantFilter:
    """Without a base class: it has only host_passes."""

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        tenants = {one.metadata["tenant"] for one in host_state.aggregates if "tenant" in one.metadata}
        return not tenants or spec_obj.project_id in tenants


class AddressFilter:
    """Like Nova's filter for networks, it fails on a host without an address, if the request has one."""

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        return not spec_obj.get_scheduler_hint("build_near_host_ip") or bool(host_state.host_ip.endswith(".7"))


class FewestFilter(BaseFilter):
    """A filter that evaluates all hosts together."""

    def filter_all(self, filter_obj_list: Any, spec_obj: Any) -> Any:
        fewest = min(one.num_instances for one in filter_obj_list)
        return [one for one in filter_obj_list if one.num_instances == fewest]


class NoneFilter:
    def filter_all(self, filter_obj_list: Any, spec_obj: Any) -> Any:
        return None


class CuriousFilter:
    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        return bool(host_state.colour == "green")


class CuriousBaseFilter(BaseFilter):
    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        return bool(host_state.host == "a" or host_state.colour == "green")


class BaseWeigher:
    """Like Nova's base class."""

    minval: float | None = None
    maxval: float | None = None

    def weight_multiplier(self, host_state: Any) -> float:
        return 1.0

    def weigh_objects(self, weighed_obj_list: Any, weight_properties: Any) -> list[float]:
        weights = []
        for obj in weighed_obj_list:
            weight = self._weigh_object(obj.obj, weight_properties)
            if self.minval is not None:
                weight = max(weight, self.minval)
            if self.maxval is not None:
                weight = min(weight, self.maxval)
            weights.append(weight)
        return weights

    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        raise NotImplementedError


class RAMWeigher(BaseWeigher):
    minval = 0

    def weight_multiplier(self, host_state: Any) -> float:
        found = [float(a.metadata["ram_x"]) for a in host_state.aggregates if "ram_x" in a.metadata]
        return min(found, default=2.0)

    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        return float(obj.free_ram_mb)


class AffinityWeigher(BaseWeigher):
    """Like Nova's ServerGroupSoftAffinityWeigher."""

    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        group = weight_properties.instance_group
        if not group or group.policy != "soft-affinity":
            return 0
        return len(set(obj.instances.keys()) & set(group.members))


class CuriousWeigher(BaseWeigher):
    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        return 1.0 if obj.host == "a" else float(obj.colour)


class ShortWeigher(BaseWeigher):
    def weigh_objects(self, weighed_obj_list: Any, weight_properties: Any) -> list[float]:
        return [1.0]


class PlainWeigher:
    """Without a base class: only _weigh_object, with minval and maxval of its own."""

    minval, maxval = 0, 10

    def _weigh_object(self, host_state: Any, weight_properties: Any) -> float:
        return float(next(m.value for m in host_state.metrics if m.name == "power"))


class NeedsArguments:
    def __init__(self, something: Any) -> None: ...

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        return True


class Nothing:
    """Without any method that Nova would call."""
