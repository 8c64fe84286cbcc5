"""The rates of `benchmarks.throughput`: rows with a quota are compared with those of the same round."""

from benchmarks.claim_work import Measured
from benchmarks.throughput import quota_ratios


def row(work: str, claims: int) -> Measured:
    return Measured(1000, work, claims, 1.0)


def test_each_round_with_a_quota_is_compared_with_the_same_round_without() -> None:
    """Comparing medians would be less precise: other load on the machine slows down both rows of a round."""
    rows = [
        row("in process, 1 task", 100),
        row("in process, 1 task, a quota", 90),
        row("in process, 1 task, a quota", 50),
        row("in process, 1 task", 50),
        row("in process, 1 task", 200),
        row("in process, 1 task, a quota", 160),
        row("in process, 32 tasks", 10),
        row("in process, 32 tasks, a quota", 10),
    ]
    assert list(quota_ratios(rows)) == [
        "in process, 1 task, a quota: 0.90 (0.80 to 1.00) of the rate without, in 3 rounds",
        "in process, 32 tasks, a quota: 1.00 (1.00 to 1.00) of the rate without, in 1 rounds",
    ]
