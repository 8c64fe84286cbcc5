"""Stand-ins for classes that are Nova's own, or derived from them: parts of them are objects of Nova, as they expect.

Nova is imported when the first such object is made: it is installed, or there would be no class of Nova.
"""

import logging
from collections.abc import Mapping
from typing import Any

from redsched.decide.plugins.nova import novas_topology as topology
from redsched.decide.plugins.nova.host_state import HostState
from redsched.decide.plugins.nova.lazy_object import constant
from redsched.decide.plugins.nova.request_spec import IMAGE, RequestSpec
from redsched.errors import InvalidRequest

_NOISY = "nova.scheduler.filters.aggregate_image_properties_isolation"
"""A logger that warns for each host in each decision of each metadata of aggregates that is not about images."""


class NovasHostState(HostState):
    """A host whose NUMA nodes and devices are objects of Nova. It has one allocation candidate, which says nothing."""


class NovasRequestSpec(RequestSpec):
    """A request whose image, NUMA cells and devices are objects of Nova.

    The image has Nova's properties only, with values of their types.
    """


def stand_ins(plugin: object) -> tuple[type[HostState], type[RequestSpec]]:
    """Return the stand-ins to give to a plugin: with objects of Nova if its class is Nova's or derives from one."""
    if not any(one.__module__.partition(".")[0] == "nova" for one in type(plugin).__mro__):
        return HostState, RequestSpec
    noisy = logging.getLogger(_NOISY)
    if noisy.level == logging.NOTSET:
        noisy.setLevel(logging.ERROR)
    return NovasHostState, NovasRequestSpec


def _image(spec: RequestSpec) -> Any:
    """Return the image. Raises InvalidRequest if a property has a value that Nova does not allow."""
    texts, module = spec._request.properties, topology.objects("image_meta")
    given = {"id": texts[IMAGE]} if IMAGE in texts else {}
    return module.ImageMeta(properties=_properties(module, texts), **given)


def _properties(module: Any, texts: Mapping[str, str]) -> Any:
    for name, text in texts.items():
        try:
            module.ImageMetaProps.from_dict({name: text})
        except Exception as error:  # a ValueError, or one of Nova's that are none
            raise InvalidRequest(f"properties has {name} {text!r}, which Nova does not accept: {error}") from error
    return module.ImageMetaProps.from_dict(dict(texts))


NovasHostState._readers = {
    **HostState._readers,
    "numa_topology": topology.host_topology,
    "pci_stats": topology.pci_stats,
    "allocation_candidates": constant([{"mappings": {}}]),
}
NovasRequestSpec._readers = {
    **RequestSpec._readers,
    "image": _image,
    "numa_topology": topology.requested_topology,
    "pci_requests": topology.pci_requests,
}
