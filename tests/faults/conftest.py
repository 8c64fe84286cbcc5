"""Fixtures of the fault suites: scheduler processes that live as long as the suite, and a cluster for each module."""

from collections.abc import Iterator

import pytest

from redsched.store.embedded.server import ServerBinary
from tests.support.processes.racers import Racers, racers
from tests.support.servers import name_of, servers_of
from tests.support.setups import ClusterSetup, cluster_setup

PROCESSES = 8


@pytest.fixture(scope="session")
def race() -> Iterator[Racers]:
    """Eight processes to run schedulers in."""
    with racers(PROCESSES) as started:
        yield started


@pytest.fixture(scope="module", params=servers_of(__file__), ids=name_of)
def running(request: pytest.FixtureRequest) -> Iterator[ClusterSetup]:
    """A cluster of three shards with one replica each. Tests restore killed servers and moved slots."""
    binary: ServerBinary = request.param
    with cluster_setup(replicas=1, binary=binary) as started:
        yield started
