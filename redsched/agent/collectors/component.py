"""What one part of a machine (its NUMA nodes, its PCI devices, its GPUs) adds to a look at the whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redsched.model import Amounts, Pool


@dataclass(frozen=True, slots=True)
class Part:
    """Pools, metrics, and usage by slot that no claim explains; `trusted` as in a Look."""

    pools: Mapping[str, Pool]
    unexplained: Amounts = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()
    metrics: Mapping[str, float] = field(default_factory=dict)


def apportion(amount: int, weights: Sequence[int]) -> list[int]:
    """Split `amount` in proportion to `weights`: whole shares that sum to it, none above its weight.

    Largest remainders first (Hamilton's method). What is more than all weights together is cut off.
    """
    whole = sum(weights)
    amount = min(amount, whole)
    shares = [amount * weight // whole if whole else 0 for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda one: (-(amount * weights[one] % max(1, whole)), one))
    for one in by_remainder[: amount - sum(shares)]:
        shares[one] += 1
    return shares
