"""What the fault suites share: scheduler processes that live as long as the suite."""

from collections.abc import Iterator

import pytest

from tests.support.racers import Racers, racers

PROCESSES = 8


@pytest.fixture(scope="session")
def race() -> Iterator[Racers]:
    """Eight processes, to be schedulers in."""
    with racers(PROCESSES) as started:
        yield started
