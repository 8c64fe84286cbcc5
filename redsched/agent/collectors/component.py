"""What one component of a machine (its NUMA nodes, PCI devices or GPUs) adds to the observation of the machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redsched.model import Amounts, Pool


@dataclass(frozen=True, slots=True)
class Part:
    """Pools, metrics, and usage by slot that belongs to no claim; `trusted` is as in Observation."""

    pools: Mapping[str, Pool]
    unexplained: Amounts = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()
    metrics: Mapping[str, float] = field(default_factory=dict)


def apportion(amount: int, weights: Sequence[int]) -> list[int]:
    """Split `amount` into whole shares in proportion to `weights`, none larger than its weight.

    Uses the largest remainder method (Hamilton's). An amount above the sum of the weights is cut off to that sum.
    """
    whole = sum(weights)
    amount = min(amount, whole)
    shares = [amount * weight // whole if whole else 0 for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda one: (-(amount * weights[one] % max(1, whole)), one))
    for one in by_remainder[: amount - sum(shares)]:
        shares[one] += 1
    return shares
