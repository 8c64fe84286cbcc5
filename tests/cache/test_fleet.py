"""What hosts have and what is left of it, by zone, class and status."""

from collections.abc import Generator

import pytest

from redsched.cache import fleet
from redsched.cache.columns import Columns
from redsched.cache.fleet import ClassUsage, FleetUsage, fleet_steps
from redsched.decide.steps import finished
from redsched.store.codec.fields import WRITTEN_OFF
from tests.support.builders.columns import columns_of

GPU = "CUSTOM_GPU_MILLI"


def fleet_usage(columns: Columns) -> FleetUsage:
    return finished(fleet_steps(columns))


def host(zone: str = "az1", **fields: object) -> dict[str, str]:
    """Return the fields of a host that takes claims; `capacity__VCPU=4` stands for `capacity.VCPU`."""
    own = {name.replace("__", "."): str(value) for name, value in fields.items()}
    return {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1", "zone": zone} | own


def of_vcpu(capacity: int, claimed: int = 0, **more: int | str) -> dict[str, str]:
    return host("az1", **{"capacity__VCPU": capacity, "claimed__VCPU": claimed, **more})


def test_amounts_are_summed_by_zone_and_class_over_hosts_and_their_pools() -> None:
    pools = {f"capacity.gpu{number}/{GPU}": "1000" for number in range(4)} | {f"claimed.gpu0/{GPU}": "250"}
    usage = fleet_usage(
        columns_of(
            a=host(capacity__VCPU=8, claimed__VCPU=3, external__VCPU=1, claims=1),
            b=host(capacity__VCPU=16, claims=2, starting=1, failures=3) | pools,
            c=host("az2", capacity__VCPU=4, failures=2),
        )
    )
    assert usage.classes == {
        ("az1", "VCPU"): ClassUsage(24, 3, 1, 0, 20, 16, 0),
        ("az1", GPU): ClassUsage(4000, 250, 0, 0, 3750, 1000, 0),
        ("az2", "VCPU"): ClassUsage(4, 0, 0, 0, 4, 4, 0),
    }
    assert (usage.starting, usage.failing, usage.reserved) == (1, 1, 0)


def test_a_host_has_the_first_status_that_applies() -> None:
    usage = fleet_usage(
        columns_of(
            enabled=of_vcpu(1),
            draining=of_vcpu(2, status="draining", claims=2),
            disabled=of_vcpu(4, status="disabled"),
            unattested=of_vcpu(8, epoch="0-b", status="disabled"),
            down=of_vcpu(16, alive=0, epoch="0-b", claims=3),
            lost=of_vcpu(32, 32, alive=0, epoch=WRITTEN_OFF, claims=5),
        )
    )
    assert usage.hosts == dict.fromkeys(("lost", "down", "unattested", "disabled", "draining", "enabled"), 1)
    assert {status: count for status, count in usage.claims.items() if count} == {"lost": 5, "down": 3, "draining": 2}
    # A host that was written off has no capacity; only an enabled one has anything free.
    assert usage.classes["az1", "VCPU"] == ClassUsage(31, 0, 0, 0, 1, 1, 0)


def test_what_is_kept_for_a_request_is_neither_free_nor_external() -> None:
    reserved = {"reservation": "r1", "reservation_from_ms": "5", "kept.VCPU": "6", f"kept.gpu0/{GPU}": "500"}
    usage = fleet_usage(
        columns_of(
            a=of_vcpu(8, external__VCPU=1),
            lost=of_vcpu(8, epoch=WRITTEN_OFF) | reserved,
            b=of_vcpu(8, external__VCPU=1) | reserved | {f"capacity.gpu0/{GPU}": "1000"},
        )
    )
    assert usage.classes["az1", "VCPU"] == ClassUsage(16, 0, 2, 6, 8, 7, 0)
    assert usage.classes["az1", GPU] == ClassUsage(1000, 0, 0, 500, 500, 500, 0)
    assert usage.reserved == 2


def test_amounts_beside_too_little_for_an_average_claim_are_stranded() -> None:
    """The average claim has 5 VCPU: `a` has 4 left, and so its memory is of no use."""
    usage = fleet_usage(
        columns_of(
            a=of_vcpu(10, 6, claims=1, capacity__MEMORY_MB=100),
            b=of_vcpu(10, 4, claims=1, capacity__MEMORY_MB=100),
        )
    )
    assert usage.classes["az1", "MEMORY_MB"].stranded == 100
    assert usage.classes["az1", "VCPU"] == ClassUsage(20, 10, 0, 0, 10, 6, 4)


def test_too_many_zones_are_not_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "MAX_ROOMS", 2)
    usage = fleet_usage(columns_of(**{f"h{zone}": host(f"az{zone}", capacity__VCPU=1) for zone in range(3)}))
    assert usage.classes == {("*", "VCPU"): ClassUsage(3, 0, 0, 0, 3, 1, 0)}


def test_hosts_may_come_and_go_between_the_steps() -> None:
    """What has not changed is counted, although the arrays have grown and a column was dropped."""
    columns = columns_of(a=of_vcpu(4, capacity__MEMORY_MB=8), b=of_vcpu(2, capacity__CUSTOM_SEAT=1))
    steps, found = fleet_steps(columns), list[FleetUsage]()

    def run() -> Generator[None, None, None]:
        found.append((yield from steps))

    for number, _ in enumerate(run()):
        for more in range(100):
            columns.put(f"new{number}-{more}", of_vcpu(16))
        columns.remove("b")
        columns.give_back()
    assert found[0].classes["az1", "MEMORY_MB"] == ClassUsage(8, 0, 0, 0, 8, 8, 0)


def test_an_empty_cell_has_nothing() -> None:
    none = dict.fromkeys(fleet.STATUSES, 0)
    assert fleet_usage(columns_of()) == FleetUsage({}, none, none, 0, 0, 0, 0, 0, 0)
