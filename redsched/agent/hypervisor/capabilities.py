"""What libvirt says of a host in its capabilities, as XML (https://libvirt.org/formatcaps.html)."""

from dataclasses import dataclass
from xml.etree import ElementTree as ET


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The architecture as uname gives it, the CPU's model and listed features, and the number of NUMA nodes.

    `cpu` is the XML of the CPU, from which libvirt can expand all features.
    """

    arch: str
    model: str
    features: frozenset[str]
    numa_nodes: int
    cpu: str

    @classmethod
    def from_xml(cls, text: str) -> "Capabilities":
        """Parse the XML of `virConnectGetCapabilities`. Parts that are missing are empty."""
        root = ET.fromstring(text)
        cpu = root.find("host/cpu")
        return cls(
            arch=root.findtext("host/cpu/arch", ""),
            model=root.findtext("host/cpu/model", ""),
            features=frozenset() if cpu is None else features_of(cpu),
            numa_nodes=len(root.findall("host/topology/cells/cell")),
            cpu="" if cpu is None else ET.tostring(cpu, encoding="unicode"),
        )


def features_of(cpu: ET.Element) -> frozenset[str]:
    """Return the features that the XML of a CPU requires or has."""
    absent = ("disable", "forbid")
    return frozenset(one.get("name", "") for one in cpu.findall("feature") if one.get("policy") not in absent) - {""}


def expanded_features(text: str) -> frozenset[str]:
    """Return the features of the XML of a single CPU, as libvirt expands it."""
    return features_of(ET.fromstring(text))
