"""If Nova is installed: no class of it fails on any fleet and request, and those for NUMA and devices agree with ours.

A class that failed would end requests with `internal-error`.
"""

from functools import cache
from random import Random

import pytest
from hypothesis import given, strategies as st

from redsched.decide.decider import Decider
from redsched.decide.plugins.nova.catalogue import FILTER_PACKAGE, FILTERS, WEIGHER_PACKAGE, WEIGHERS, path_of
from redsched.decide.plugins.registry import PluginRegistry, plugin_registry
from redsched.decide.work_limit import TooMuchWork, WorkLimit
from redsched.model import Numa, NumaAffinity, NumaCell, PciDevices, Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of
from tests.support.fleets import filter_fleets, pool_fleets
from tests.support.fleets.pool_fleets import seeds

pytestmark = pytest.mark.filterwarnings("ignore")  # Nova's libraries emit warnings about each other

CLASSES = {FILTER_PACKAGE: FILTERS, WEIGHER_PACKAGE: WEIGHERS}


@pytest.fixture(autouse=True, scope="module")
def nova() -> None:
    """Skip the tests if Nova is not installed."""
    pytest.importorskip("nova.conf", reason="Nova is not installed")


@cache
def settings(*names: str) -> Settings:
    """Return settings that use these classes of Nova; without any, all that run here."""
    paths = {
        package: tuple(
            path_of(package, name) for name, one in classes.items() if not one.refused and (not names or name in names)
        )
        for package, classes in CLASSES.items()
    }
    return Settings(nova_filters=paths[FILTER_PACKAGE], nova_weighers=paths[WEIGHER_PACKAGE])


@cache
def plugins(*names: str) -> PluginRegistry:
    return plugin_registry(settings(*names))


@given(st.integers(1, 12), seeds, seeds)
def test_no_class_fails_on_hosts_and_requests_with_conditions(size: int, world: int, request: int) -> None:
    columns = filter_fleets.random_world(size, world).columns()
    decider = Decider(columns, settings(), plugins())
    asked = filter_fleets.filtered_request(request)
    decider.decide(asked, Random(0))
    decider.explain(asked)


@given(seeds, seeds)
def test_no_class_fails_on_hosts_with_pools_and_requests_for_them(host: int, request: int) -> None:
    columns = pool_fleets.random_host(host).columns()
    decider = Decider(columns, settings(), plugins())
    decider.decide(pool_fleets.random_request(request), Random(0))


def test_orders_of_nodes_are_held_to_the_limit_of_work() -> None:
    """Nova tries each of 362,880 orders of nine nodes, if none has the device that must be near."""
    nodes = {f"trait.numa{number}/HW_NUMA_ROOT": "1" for number in range(9)}
    nodes |= {f"pool.numa{number}": "/" for number in range(9)} | {"pool.pf0": "/", "capacity.pf0/SRIOV_NET_VF": "1"}
    nodes |= {f"capacity.numa{number}/VCPU": "4" for number in range(9)}
    nodes |= {f"capacity.numa{number}/MEMORY_MB": "400" for number in range(9)}
    columns = columns_of(h1={"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1"} | nodes)
    devices = (PciDevices("SRIOV_NET_VF", 1, NumaAffinity.REQUIRED),)
    request = Request(numa=Numa((NumaCell(2, 100),) * 9), pci=devices)
    decider = Decider(columns, settings("NUMATopologyFilter"), plugins("NUMATopologyFilter"))
    with WorkLimit(0.1, 1.0).working(), pytest.raises(TooMuchWork, match="asking classes written for Nova"):
        decider.decide(request, Random(0))


@given(seeds)
def test_what_fits_a_host_fits_it_for_nova(seed: int) -> None:
    """Only for guests with equal cells: Nova numbers cells anew at each attempt, and then confuses different ones."""
    planted = pool_fleets.planted(seed)
    if planted is None or not (planted[1].numa or planted[1].pci):
        return
    host, full = planted
    if full.numa is not None and len(set(full.numa.cells)) > 1:
        return
    request = Request(numa=full.numa, pci=full.pci)
    names, columns = ("NUMATopologyFilter", "PciPassthroughFilter"), host.columns()
    ours = Decider(columns, Settings()).decide(request, Random(0))
    both = Decider(columns, settings(*names), plugins(*names)).decide(request, Random(0))
    assert bool(both.places) == bool(ours.places)
