"""Cases for Nova's weighers: fleets of hosts, in aggregates that have multipliers, and one request for each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

FLEETS, HOSTS = 25, 6
HERE, THERE = "00000000-0000-4000-8000-00000000ce11", "00000000-0000-4000-8000-00000000ce12"


@dataclass(frozen=True)
class Fleet:
    """Hosts for one weigher, as in `filters`; with `failures`, `cell`, `cpu`, `disk` ([total, used, ratio]) too."""

    weigher: str
    hosts: list[dict[str, Any]]
    spec: dict[str, Any] = field(default_factory=dict)
    aggregates: dict[str, dict[str, str]] = field(default_factory=dict)
    conf: dict[str, Any] = field(default_factory=dict)
    metrics_conf: dict[str, Any] = field(default_factory=dict)


def _ram(rng: Random) -> dict[str, Any]:
    return {"ram": _amounts(rng, 4096, (1.0, 1.0, 1.5, 2.0))}


def _cpu(rng: Random) -> dict[str, Any]:
    return {"cpu": _amounts(rng, 16, (1.0, 4.0, 16.0))}


def _disk(rng: Random) -> dict[str, Any]:
    return {"disk": _amounts(rng, 500, (1.0, 1.0, 2.0))}


def _amounts(rng: Random, unit: int, ratios: tuple[float, ...]) -> list[Any]:
    total, ratio = unit * rng.choice((1, 2, 4)), rng.choice(ratios)
    return [total, rng.randrange(int(total * ratio) + 1), ratio]


def _pci(rng: Random) -> dict[str, Any]:
    return {"pci": [["1572", rng.choice((0, 3, 40, 120)), None] for _ in range(rng.randrange(3))]}


def _metrics(rng: Random) -> dict[str, Any]:
    return {"metrics": {name: rng.randrange(100) for name in ("cpu.frequency", "cpu.user.time") if rng.random() < 0.8}}


IMAGES = {"os_type": ("linux", "windows"), "hw_machine_type": ("q35", "pc"), "os_distro": ("debian", "fedora")}


def _image(rng: Random) -> dict[str, Any]:
    """Return the image of the only instance on a host."""
    return {"image": {key: rng.choice(values) for key, values in IMAGES.items() if rng.random() < 0.8}}


def _cells(rng: Random) -> dict[str, Any]:
    return {"cell": rng.choice((HERE, HERE, HERE, THERE))}


MAKERS: dict[str, Callable[[Random], dict[str, Any]]] = {
    "RAMWeigher": _ram,
    "CPUWeigher": _cpu,
    "DiskWeigher": _disk,
    "PCIWeigher": _pci,
    "MetricsWeigher": _metrics,
    "IoOpsWeigher": lambda rng: {"num_io_ops": rng.randrange(6)},
    "NumInstancesWeigher": lambda rng: {"num_instances": rng.randrange(4, 9)},
    "BuildFailureWeigher": lambda rng: {"failures": rng.choice((0, 0, 1, 4))},
    "HypervisorVersionWeigher": lambda rng: {"hypervisor_version": rng.choice((0, 6002000, 8000000, 8002000))},
    "ServerGroupSoftAffinityWeigher": lambda rng: {"members": rng.choice((0, 0, 1, 2, 3))},
    "ServerGroupSoftAntiAffinityWeigher": lambda rng: {"members": rng.choice((0, 0, 1, 2, 3))},
    "CrossCellWeigher": _cells,
    "ImagePropertiesWeigher": _image,
}
"""By weigher: makes what it reads of a host."""

OPTIONS = {
    "RAMWeigher": "ram",
    "CPUWeigher": "cpu",
    "DiskWeigher": "disk",
    "PCIWeigher": "pci",
    "MetricsWeigher": "metrics",
    "IoOpsWeigher": "io_ops",
    "NumInstancesWeigher": "num_instances",
    "BuildFailureWeigher": "build_failure",
    "HypervisorVersionWeigher": "hypervisor_version",
    "ServerGroupSoftAffinityWeigher": "soft_affinity",
    "ServerGroupSoftAntiAffinityWeigher": "soft_anti_affinity",
    "CrossCellWeigher": "cross_cell_move",
    "ImagePropertiesWeigher": "image_props",
}
"""By weigher: the beginning of its option and of its key in the metadata of aggregates."""

NOT_NEGATIVE = (
    "BuildFailureWeigher",
    "PCIWeigher",
    "ServerGroupSoftAffinityWeigher",
    "ServerGroupSoftAntiAffinityWeigher",
)
"""The weighers for which Nova accepts no negative setting."""


def fleets(salt: str = "") -> Iterator[Fleet]:
    """Yield the fleets of all weighers, each weigher's from a seed of its own. Another salt gives others."""
    for weigher, make in MAKERS.items():
        rng = Random(salt + weigher)
        for _ in range(FLEETS):
            yield _fleet(rng, weigher, make)


def _fleet(rng: Random, weigher: str, make: Callable[[Random], dict[str, Any]]) -> Fleet:
    option = f"{OPTIONS[weigher]}_weight_multiplier"
    numbers = rng.choice((("3.5", "-1.5"), ("3.5", "0"), ("2", "much"), ()))
    aggregates = {f"a{number}": {option: text} for number, text in enumerate(numbers)}
    hosts = [_in_aggregates(rng, make(rng), list(aggregates)) for _ in range(HOSTS)]
    setting = {option: rng.choice((1.0, 1.0, 3.0 if weigher in NOT_NEGATIVE else -2.0, 0.0))}
    if weigher == "MetricsWeigher":
        weighed = rng.choice(
            (
                ["cpu.frequency=-2.0", "cpu.user.time=0.5"],
                ["cpu.frequency=1.0"],
                ["cpu.user.time=0.0", "cpu.frequency=1.0"],
            )
        )
        metrics = {"weight_setting": weighed, "required": False, "weight_multiplier": setting[option]}
        return Fleet(weigher, hosts, _spec(rng, weigher), aggregates, {}, metrics)
    if weigher == "ImagePropertiesWeigher":
        weighed = rng.choice(([], [], ["os_type=2.0"], ["os_distro=-1.0", "hw_machine_type=0.5"]))
        return Fleet(weigher, hosts, _image(rng), aggregates, setting | {"image_props_weight_setting": weighed})
    return Fleet(weigher, hosts, _spec(rng, weigher), aggregates, setting)


def _in_aggregates(rng: Random, host: dict[str, Any], names: list[str]) -> dict[str, Any]:
    mine = sorted(name for name in names if rng.random() < 0.5)
    return host | ({"aggregates": mine} if mine else {})


def _spec(rng: Random, weigher: str) -> dict[str, Any]:
    if "Affinity" in weigher:
        own = "soft-anti-affinity" if "Anti" in weigher else "soft-affinity"
        return {"group": {"policy": rng.choice((own, own, own, "soft-affinity", "anti-affinity")), "max": 1}}
    if weigher == "CrossCellWeigher":
        return rng.choice(({"from_cell": HERE}, {}))
    return {}
