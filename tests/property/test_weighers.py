"""Every headroom weigher computes its documented formula, for all hosts at once and for each host alone."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from redsched.decide.plugins.registry import plugin_registry
from redsched.decide.scoring.weigher import normalized
from redsched.model import Group, Request
from redsched.settings import Settings
from tests.support.models import plain_weighing as plain
from tests.support.models.plain_reading import Fields, Fleet, columns_from

SHARES = {100: 1.0, 500: 2.0, 1000: 4.0}
BESIDE = {"VCPU": 6.0, "MEMORY_MB": 500.0}
SCARCE = {"FPGA": {"VCPU": 3.0}, "DISK_GB": {"MEMORY_MB": 20.0, "VCPU": 0.5}}
WEIGHERS = plugin_registry(Settings(gpu_shares=SHARES, gpu_beside=BESIDE, scarce=SCARCE, spare_up_to=0)).weighers
GPU = "CUSTOM_GPU_MILLI"
READINGS: dict[str, Callable[[Fields, Request], float]] = {
    "spread": plain.spread_of,
    "pack": lambda fields, request: 1.0 - plain.spread_of(fields, request),
    "best_fit": plain.best_fit_of,
    "dot_product": plain.dot_product_of,
    "balance": plain.balance_of,
    "gpu_fragmentation": lambda fields, request: plain.gpu_fragmentation_of(fields, request, SHARES, BESIDE),
    "gpu_stranding": lambda fields, request: plain.stranding_of(fields, request, {GPU: BESIDE}, 1000),
    "stranding": lambda fields, request: plain.stranding_of(fields, request, SCARCE),
    "cpu": lambda fields, request: float(plain.left_of(fields, "VCPU")),
}


@st.composite
def _slot(draw: st.DrawFn, slot: str, most: int, least_left: int = 0) -> dict[str, str]:
    capacity = draw(st.integers(max(1, least_left), most))
    claimed = draw(st.integers(0, capacity - least_left))
    external = draw(st.integers(0, capacity - least_left - claimed))
    return {f"capacity.{slot}": str(capacity), f"claimed.{slot}": str(claimed), f"external.{slot}": str(external)}


@st.composite
def _hosts(draw: st.DrawFn) -> dict[str, str]:
    """Return a host with room for every request below, in the host itself and its pools together."""
    fields = draw(_slot("VCPU", 64, 4)) | draw(_slot("MEMORY_MB", 4096, 1))
    if draw(st.booleans()):
        fields |= draw(_slot("DISK_GB", 100))
    for number in range(draw(st.integers(0, 2))):
        fields |= draw(_slot(f"numa{number}/VCPU", 16)) | draw(_slot(f"numa{number}/MEMORY_MB", 100))
    for number in range(draw(st.integers(0, 2))):
        fields |= draw(_slot(f"board{number}/FPGA", 2))
    fields |= draw(_slot(f"gpu0/{GPU}", 3000, 2000))
    for number in range(1, draw(st.integers(1, 4))):
        fields |= draw(_slot(f"gpu{number}/{GPU}", 1000))
    return fields


_FLEETS = st.lists(_hosts(), min_size=1, max_size=6).map(lambda hosts: {f"h{n}": one for n, one in enumerate(hosts)})
_SHARES = st.lists(st.sampled_from((50, 250, 499, 500, 1000)), max_size=2)
_REQUESTS = st.builds(
    lambda cpus, memory, grouped, shares: Request(
        {"VCPU": cpus} | ({"MEMORY_MB": 1} if memory else {}),
        groups=(
            *(Group(f"g{n}", {GPU: share}) for n, share in enumerate(shares)),
            *((Group("v", {"VCPU": grouped}),) if grouped else ()),
        ),
    ),
    st.integers(1, 2),
    st.booleans(),
    st.integers(0, 2),
    _SHARES,
)


@pytest.mark.parametrize("name", READINGS)
@given(fleet=_FLEETS, request_=_REQUESTS)
def test_a_weigher_is_its_plain_reading(name: str, fleet: Fleet, request_: Request) -> None:
    columns, one = columns_from(fleet), WEIGHERS[name]
    rows = [row for host in fleet if (row := columns.row(host)) is not None]
    together = one.raw(columns, request_, np.array(rows)).tolist()
    assert together == [float(one.raw(columns, request_, row)) for row in rows]
    expected = [READINGS[name](fields, request_) for fields in fleet.values()]
    assert together == pytest.approx(expected, abs=1e-12)
    if not one.relative:
        assert all(-1e-12 <= value <= 1 + 1e-12 for value in together)


_SPECIAL = ("DISK_GB", "FPGA", "board0/FPGA", "board1/FPGA", "gpu0/CUSTOM_GPU_MILLI", "CUSTOM_SEAT")


@given(
    hosts=st.lists(st.frozensets(st.sampled_from(_SPECIAL), max_size=3), min_size=1, max_size=6),
    asked=st.frozensets(st.sampled_from(("FPGA", "CUSTOM_GPU_MILLI", "CUSTOM_SEAT")), max_size=2),
    up_to=st.sampled_from((0.0, 0.3, 0.5, 1.0)),
)
def test_what_counts_against_the_hosts_of_scarce_classes_is_its_plain_reading(
    hosts: list[frozenset[str]], asked: frozenset[str], up_to: float
) -> None:
    fleet = {f"h{number}": {f"capacity.{slot}": "4" for slot in {"VCPU", *slots}} for number, slots in enumerate(hosts)}
    columns, request = columns_from(fleet), Request(dict.fromkeys(("VCPU", *asked), 1))
    one = plugin_registry(Settings(spare_up_to=up_to)).weighers["stranding"]
    rows = [row for host in fleet if (row := columns.row(host)) is not None]
    expected = [-plain.against_of(fleet, fields, request, up_to) for fields in fleet.values()]
    assert np.broadcast_to(one.raw(columns, request, np.array(rows)), len(rows)).tolist() == pytest.approx(expected)
    assert [float(one.raw(columns, request, row)) for row in rows] == pytest.approx(expected)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.one_of(st.none(), st.floats(-1e6, 1e6)))
def test_stretching_is_novas(values: list[float], lowest: float | None) -> None:
    assert normalized(np.array(values), lowest).tolist() == plain.stretched_of(values, lowest)
