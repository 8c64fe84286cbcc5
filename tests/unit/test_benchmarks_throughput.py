"""The rates of `benchmarks.throughput`: rows are compared with those of the same round."""

from benchmarks.claim_work import Measured
from benchmarks.throughput import quota_ratios, rest_ratios


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


def test_selections_over_rest_are_compared_with_healthz_of_the_same_round() -> None:
    """The rate of /healthz is the most that the server and its clients can do on this machine."""
    rows = [
        Measured(1000, "GET /healthz, 1 worker", 200, 1.0, p99_ms=2.0, is_claimed=False),
        Measured(1000, "REST, 1 worker", 100, 1.0, p99_ms=8.0),
        Measured(1000, "REST, 1 worker", 60, 1.0, p99_ms=9.0),
        Measured(1000, "GET /healthz, 1 worker", 100, 1.0, p99_ms=3.0, is_claimed=False),
        Measured(1000, "REST, count: 100, 1 worker", 5000, 1.0, p99_ms=90.0),
    ]
    assert list(rest_ratios(rows)) == [
        "REST, 1 worker: 0.55 (0.50 to 0.60) of the rate of /healthz, and 3.5 (3.0 to 4.0) times its p99, in 2 rounds"
    ]
