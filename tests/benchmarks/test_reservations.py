"""The benchmark of reservations: what it counts, on a fleet of a few hosts."""

from random import Random

import pytest

from benchmarks.openb import CPU, Node, Task
from benchmarks.packing import Run, settings_for
from benchmarks.reservations import churn

NODES = [Node(f"n{number}", {CPU: 80_000, "MEMORY_MB": 80_000}, 8, "T4") for number in range(12)]
SMALL = [Task(f"s{number}", {CPU: 1000, "MEMORY_MB": 1000}, (1000,), ()) for number in range(50)]
LARGE = [Task(f"l{number}", {CPU: 1000, "MEMORY_MB": 1000}, (1000,) * 8, ()) for number in range(2)]


@pytest.mark.parametrize("seed", [1, 2])
def test_large_tasks_are_placed_if_they_may_wait(seed: int) -> None:
    tasks = Random(seed).sample(SMALL + LARGE, len(SMALL + LARGE))
    run = Run("gpu", seed, settings_for(tasks, 1, learns=False))
    at_once, waited = churn(NODES, tasks, run, 0.0), churn(NODES, tasks, run, 3.0)
    assert at_once.mean_wait == 0
    assert waited.large > 0
    assert waited.large_placed / waited.large > at_once.large_placed / at_once.large
    assert 0 < waited.mean_wait <= 3
    assert 0 < waited.percent <= 100
