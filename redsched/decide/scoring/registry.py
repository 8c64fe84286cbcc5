"""The available weighers and policies, and the checks of names that refer to them."""

from collections.abc import Iterable, Mapping

from redsched.decide.aggregates import per_revision
from redsched.decide.scoring.aggregates import multipliers_in, overridable
from redsched.decide.scoring.gpu import GpuDemands, gpu_fragmentation
from redsched.decide.scoring.groups import members_near, no_members_near, soft_spread
from redsched.decide.scoring.headroom import balance, best_fit, dot_product, pack, spread
from redsched.decide.scoring.hosts import (
    build_failure,
    cross_cell,
    failures,
    free_of,
    hypervisor_version,
    image_props,
    io_ops,
    metrics,
    num_instances,
    pci,
    unscaled_free_of,
)
from redsched.decide.scoring.spared import Spared
from redsched.decide.scoring.stranding import (
    STRANDING,
    Scarce,
    depends_on_workload,
    stranding,
    stranding_weigher,
)
from redsched.decide.scoring.weigher import Weigher
from redsched.errors import InvalidRequest
from redsched.model import GroupPolicy
from redsched.model.workload import GPU_SHARES, WHOLE_GPU
from redsched.settings import Settings

Policy = Mapping[str, float]

POLICIES: Mapping[str, Policy] = {
    "spread": {"spread": 1.0, "failures": -1.0},
    "pack": {"pack": 1.0, "failures": -1.0},
    "gpu": {"gpu_fragmentation": 1.0, "gpu_stranding": 0.3, "failures": -1.0},
    "balanced": {"balance": 1.0, "spread": 1.0, "failures": -1.0},
    # Nova's default multipliers. 0: only for aggregates that set one.
    "nova": {
        "ram": 1.0,
        "cpu": 1.0,
        "disk": 1.0,
        "io_ops": -1.0,
        "metrics": 1.0,
        "pci": 1.0,
        "soft_affinity": 1.0,
        "soft_anti_affinity": 1.0,
        "build_failure": 1_000_000.0,
        "cross_cell": 1_000_000.0,
        "hypervisor_version": 1.0,
        "num_instances": 0.0,
        "image_props": 0.0,
    },
}

NO_PREFERENCES = frozenset(("failures", "build_failure", "cross_cell"))
"""The weighers whose multipliers say nothing about how much the room on a host matters."""

_KEYS = {"cross_cell": "cross_cell_move_weight_multiplier"}
"""Nova's metadata keys that do not derive from the weigher's name."""
_SIGNS = {"build_failure": -1.0}
"""The weighers that Nova counts against a host, though their multiplier is positive."""
_OFF_AT_0 = frozenset(("image_props",))
"""The weighers that Nova does not evaluate while their setting is 0, whatever aggregates say."""


def sparing(policy: Policy, settings: Settings) -> Policy:
    """Return a policy that spares scarce classes: with `stranding`, by as much as its preferences together.

    So room on other hosts goes first, whatever the policy prefers. One that names `stranding` stays as it is.
    """
    if not settings.spare_up_to:
        return policy
    preferences = sum(abs(multiplier) for name, multiplier in policy.items() if name not in NO_PREFERENCES)
    return {STRANDING: preferences or 1.0, **policy}


def weighers(settings: Settings, own: Iterable[Weigher] = ()) -> dict[str, Weigher]:
    """Return all weighers by name: redsched's, and `own`. Aggregates may have multipliers for each."""
    multipliers = per_revision(multipliers_in)
    return {
        one.name: overridable(
            one, multipliers, _KEYS.get(one.name, ""), _SIGNS.get(one.name, 1.0), one.name in _OFF_AT_0
        )
        for one in (*_room(settings), *_nova(settings), *own)
    }


def _room(settings: Settings) -> tuple[Weigher, ...]:
    gpus = Scarce(GPU_SHARES, settings.gpu_beside, WHOLE_GPU)
    demands, others = GpuDemands(settings.gpu_shares, gpus), [Scarce(*one) for one in settings.scarce.items()]
    return (
        Weigher("spread", spread, total=True, by_degree=True),
        Weigher("pack", pack, total=True, by_degree=True),
        Weigher("best_fit", best_fit, total=True, by_degree=True),
        Weigher("dot_product", dot_product, total=True),
        Weigher("balance", balance, total=True, by_degree=True),
        Weigher(
            "gpu_fragmentation", gpu_fragmentation(demands), depends=depends_on_workload, total=True, by_degree=True
        ),
        Weigher("gpu_stranding", stranding([gpus]), depends=depends_on_workload, total=True, by_degree=True),
        stranding_weigher(others, Spared(settings.spare_up_to)),
        Weigher("failures", failures, of_host=True, total=True, by_degree=True),
        Weigher("soft_spread", soft_spread, relative=True, dynamic=True),
    )


def _nova(settings: Settings) -> tuple[Weigher, ...]:
    # If Nova's class has a minval, 0 maps to 0, not the worst host.
    near, far = GroupPolicy.SOFT_AFFINITY, GroupPolicy.SOFT_ANTI_AFFINITY
    return (
        Weigher("ram", unscaled_free_of("MEMORY_MB"), relative=True, by_degree=True, lowest=0.0),
        Weigher("cpu", free_of("VCPU"), relative=True, by_degree=True, lowest=0.0),
        Weigher("disk", unscaled_free_of("DISK_GB"), relative=True, by_degree=True, lowest=0.0),
        Weigher("io_ops", io_ops, relative=True, by_degree=True, lowest=0.0),
        Weigher(
            "metrics", metrics(settings.metrics_weights, settings.metrics_unavailable), relative=True, by_degree=True
        ),
        Weigher("pci", pci, relative=True),
        Weigher("soft_affinity", members_near(near, 1.0), relative=True, dynamic=True, idle=no_members_near(near)),
        Weigher("soft_anti_affinity", members_near(far, -1.0), relative=True, dynamic=True, idle=no_members_near(far)),
        Weigher("build_failure", build_failure, relative=True),
        Weigher("cross_cell", cross_cell),
        Weigher("hypervisor_version", hypervisor_version, relative=True),
        Weigher("num_instances", num_instances, relative=True, by_degree=True),
        Weigher("image_props", image_props(settings.image_props_weights), relative=True),
    )


def check_policy(what: str, name: str, policies: Iterable[str]) -> None:
    """Raise InvalidRequest for an unknown policy; `what` is the source of the name."""
    if name not in policies:
        raise InvalidRequest(f"unknown {what} {name!r}: use one of {', '.join(sorted(policies))}")


def check_weighers(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise InvalidRequest for an unknown weigher; `what` is the source of the names."""
    for name in names:
        if name not in known:
            raise InvalidRequest(f"unknown weigher {name!r} in {what}: use one of {', '.join(sorted(known))}")
