"""The summary of columns, and what it rules out."""

import pytest

from redsched.cache.columns import Columns
from redsched.cache.summarize import Summarizing, summarized
from redsched.decide.summary import hosts_that_may_fit, ruled_out_by
from redsched.model import GangMember, Group, Request
from redsched.store.codec.summary import CellSummary, Room
from tests.support.builders.columns import columns_of


def host(zone: str = "az1", **fields: object) -> dict[str, str]:
    """Return an open host's fields; `capacity__VCPU=4` stands for `capacity.VCPU`."""
    own = {name.replace("__", "."): str(value) for name, value in fields.items()}
    return {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1", "zone": zone} | own


def small(vcpu: int, memory: int, zone: str = "az1") -> dict[str, str]:
    return host(zone, capacity__VCPU=vcpu, capacity__MEMORY_MB=memory)


@pytest.fixture
def summary() -> CellSummary:
    """The summary of a cell with much memory where there are few VCPU, and the reverse."""
    return summarized(columns_of(a=small(2, 4096), b=small(16, 512), c=small(16, 512), d=small(4, 1024, "az2")))


def test_rooms_have_totals_and_steps_by_powers_of_two(summary: CellSummary) -> None:
    assert summary.rooms["az1", "VCPU"] == Room(34, 16, {2: 3, 16: 2}, {})
    assert summary.rooms["az1", "MEMORY_MB"] == Room(5120, 4096, {512: 3, 4096: 1}, {2: 4096, 16: 512})
    assert summary.rooms["az2", "VCPU"] == Room(4, 4, {4: 1}, {})


@pytest.mark.parametrize(
    ("request_", "reason", "hosts"),
    [
        (Request({"VCPU": 16}), "", 2),
        (Request({"VCPU": 17}), "VCPU", 0),
        (Request({"VCPU": 3}), "", 4),  # at least 2 VCPU: an upper bound
        (Request({"VCPU": 4, "MEMORY_MB": 1025}), "MEMORY_MB", 1),
        (Request({"VCPU": 1, "MEMORY_MB": 4096}), "", 1),
        (Request({"VCPU": 8}, zones=frozenset({"az2"})), "VCPU", 0),
        (Request({"VCPU": 4}, zones=frozenset({"az2", "az3"})), "", 1),
        (Request({"VCPU": 1}, zones=frozenset({"az3"})), "zone", 0),
        (Request({"CUSTOM_SEAT": 1}), "CUSTOM_SEAT", 0),
        (Request({"VCPU": 1}, required=frozenset({"CUSTOM_T"})), "required:CUSTOM_T", 4),
        (Request({"VCPU": 1}, root_required=frozenset({"CUSTOM_T"})), "root_required:CUSTOM_T", 4),
        (Request({"VCPU": 1}, member_of=(frozenset({"ssd", "nvme"}),)), "member_of:nvme,ssd", 4),
        (Request({"VCPU": 1}, groups=(Group("g", {"VCPU": 17}),)), "VCPU", 0),
        (
            Request({}, members=(GangMember("m", Request({"VCPU": 1})), GangMember("n", Request({"VCPU": 17})))),
            "VCPU",
            0,
        ),
    ],
)
def test_what_a_summary_rules_out(summary: CellSummary, request_: Request, reason: str, hosts: int) -> None:
    assert ruled_out_by([summary], request_) == reason
    assert hosts_that_may_fit(summary, request_) == hosts


def test_what_is_claimed_or_used_otherwise_is_not_free() -> None:
    columns = columns_of(
        a=host(capacity__VCPU=8, claimed__VCPU=3, external__VCPU=1), b=host(capacity__VCPU=2, claimed__VCPU=5)
    )
    assert summarized(columns).rooms["az1", "VCPU"] == Room(4, 4, {4: 1}, {})


def test_hosts_that_take_no_claims_are_counted_by_their_first_reason() -> None:
    hosts = {
        "down": {"alive": "0"}, "unattested": {"epoch": "0-z"}, "disabled": {"status": "disabled"},
        "draining": {"status": "draining"}, "down_too": {"alive": "0", "status": "disabled"}, "up": {},
    }  # fmt: skip
    found = summarized(columns_of(**{name: small(8, 8) | fields for name, fields in hosts.items()}))
    assert found.unready == {"down": 2, "unattested": 1, "disabled": 1, "draining": 1}
    assert (found.hosts, found.ready) == (6, 1)
    assert found.rooms["az1", "VCPU"].hosts_with(8) == 1


def test_a_class_that_a_shared_pool_may_give_rules_nothing_out() -> None:
    columns = columns_of(a=small(2, 2))
    columns.declared.put("pool", "nfs", {"version": "1", "capacity.DISK_GB": "100", "claimed.DISK_GB": "40"})
    found = summarized(columns)
    assert ruled_out_by([found], Request({"VCPU": 1, "DISK_GB": 60})) == ""
    assert ruled_out_by([found], Request({"VCPU": 1, "DISK_GB": 61})) == "DISK_GB"


def test_the_largest_amount_is_that_of_one_pool_and_not_of_all() -> None:
    gpus = {"capacity.gpu0/CUSTOM_GPU": "3", "capacity.gpu1/CUSTOM_GPU": "4", "trait.gpu0/CUSTOM_T4": "1"}
    columns = columns_of(a=host() | gpus)
    found = summarized(columns)
    assert found.rooms["az1", "CUSTOM_GPU"] == Room(7, 4, {4: 1}, {})
    assert found.traits == {"CUSTOM_T4": 1}


def test_columns_may_change_and_grow_while_they_are_summarized() -> None:
    columns = Columns(2)
    columns.set_epoch("1-a")
    for number in range(2):
        columns.put(f"h{number}", small(8, 8))
    making = Summarizing(columns)
    steps = making.steps()
    for number in range(2, 40):
        next(steps, None)
        columns.put(f"h{number}", host(capacity__CUSTOM_NEW=1, trait__CUSTOM_NEW=1, aggregate__new=1))
    assert making.summary().rooms["az1", "MEMORY_MB"].hosts_with(8) == 2
