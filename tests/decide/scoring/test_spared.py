"""Requests without a scarce class leave its hosts to others, under each policy and with default settings."""

from random import Random

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.scoring import POLICIES
from redsched.decide.scoring.spared import Spared
from redsched.model import Candidate, GangMember, Group, Relation, RelationType, Request
from redsched.settings import Settings
from redsched.store.codec.replies import HostUsage
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import raw_of, weigher

EPOCH = "1-a"
UP = {"version": "1", "epoch": EPOCH, "status": "enabled", "alive": "1"}
BOX = UP | {"capacity.VCPU": "64", "capacity.MEMORY_MB": "262144"}
BOX |= {f"pool.gpu{number}": "/" for number in range(4)}
BOX |= {f"capacity.gpu{number}/CUSTOM_GPU_MILLI": "1000" for number in range(4)}
CI = UP | {"capacity.VCPU": "8", "capacity.MEMORY_MB": "16384"}
JOB = {"VCPU": 2, "MEMORY_MB": 4096}
GPU_JOB = Request({"VCPU": 2}, groups=(Group("gpu0", {"CUSTOM_GPU_MILLI": 1000}),))
BOXES = frozenset(f"box-{number}" for number in range(4))


def lab(boxes: int = 4, machines: int = 20) -> Columns:
    """Return GPU boxes, first by name and with much more room, and CI machines, each with room for 4 jobs."""
    hosts = {f"box-{number}": BOX for number in range(boxes)} | {f"ci-{number}": CI for number in range(machines)}
    columns = columns_of(**hosts)
    columns.set_epoch(EPOCH)
    return columns


def claim(columns: Columns, one: Candidate) -> str:
    """Apply a claim like a reply of the claim script, and return its host."""
    row, version = columns.row(one.host), columns.version(one.host)
    assert row is not None
    assert version is not None
    claimed = {slot: columns.claimed[slot].item(row) + amount for slot, amount in one.amounts.items()}
    count = columns.claims.item(row) + 1
    assert columns.from_reply(HostUsage(one.host, version + 1, "", claimed, count, 0), EPOCH)
    return one.host


def placed(columns: Columns, request: Request, settings: Settings, times: int, seed: int = 1) -> list[str]:
    """Return the hosts of so many requests, each of which is claimed before the next is decided."""
    decider, rng = Decider(columns, settings), Random(seed)
    return [claim(columns, decider.decide(request, rng).places[0].chosen) for _ in range(times)]


@pytest.mark.parametrize("policy", POLICIES)
def test_no_ci_job_goes_to_a_gpu_box_while_a_ci_machine_has_room(policy: str) -> None:
    columns, settings = lab(), Settings(policy=policy)
    assert not BOXES & set(placed(columns, Request(JOB), settings, 40))
    # The last one too: a random one of the best hosts is tried first, and by then few of them are CI machines.
    assert not BOXES & set(placed(columns, Request(JOB), settings, 40, seed=2))
    assert set(placed(columns, Request(JOB), settings, 8)) <= BOXES


@pytest.mark.parametrize("policy", POLICIES)
def test_a_gpu_job_goes_to_a_gpu_box_and_finds_its_cpus_there(policy: str) -> None:
    columns, settings = lab(), Settings(policy=policy)
    placed(columns, Request(JOB), settings, 40)
    hosts = placed(columns, GPU_JOB, settings, 16)
    assert {host: hosts.count(host) for host in hosts} == dict.fromkeys(BOXES, 4)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_call_for_many_places_spares_the_boxes_at_each_of_them(policy: str) -> None:
    decision = Decider(lab(), Settings(policy=policy)).decide(Request(JOB, count=80), Random(3))
    assert len(decision.places) == 80
    assert not BOXES & {place.chosen.host for place in decision.places}


def test_members_of_a_gang_spare_the_boxes_each_by_what_it_asks_for() -> None:
    members = (GangMember("train", GPU_JOB), GangMember("test", Request(JOB, count=30)))
    decision = Decider(lab(), Settings()).decide(Request(members=members), Random(3))
    on = {(place.member, place.chosen.host in BOXES) for place in decision.places}
    assert on == {("train", True), ("test", False)}


def test_places_that_go_together_spare_the_boxes_too() -> None:
    together = (Relation(RelationType.TOGETHER, ("a", "b")),)
    members = (GangMember("a", Request(JOB)), GangMember("b", Request({"VCPU": 1})))
    decider, call = Decider(lab(machines=5), Settings()), Request(members=members, relations=together)
    hosts = {decider.decide(call, Random(seed)).places[0].chosen.host for seed in range(30)}
    assert hosts == {"ci-0", "ci-1", "ci-2", "ci-3"}
    few = Decider(lab(boxes=2, machines=2), Settings())
    assert {few.decide(call, Random(seed)).places[0].chosen.host for seed in range(30)} == {"ci-0", "ci-1"}


def test_a_setting_turns_it_off() -> None:
    hosts = placed(lab(), Request(JOB), Settings(spare_up_to=0), 40)
    assert {host for host in hosts if host in BOXES} == BOXES


def test_a_request_turns_it_off_for_itself() -> None:
    assert set(placed(lab(), Request(JOB, weights={"stranding": 0}), Settings(), 8)) <= BOXES


def test_what_counts_against_a_host_grows_with_the_scarce_classes_that_are_not_asked_for() -> None:
    columns = columns_of(
        plain={"capacity.VCPU": "8"},
        more={"capacity.VCPU": "8"},
        fpga={"capacity.VCPU": "8", "capacity.board0/FPGA": "1"},
        both={"capacity.VCPU": "8", "capacity.board0/FPGA": "1", "capacity.CUSTOM_SEAT": "5"},
    )
    stranding = weigher("stranding")
    none = raw_of(stranding, columns, Request({"VCPU": 1}))
    assert none == {"both": pytest.approx(-4 / 3), "fpga": -1.0, "more": 0.0, "plain": 0.0}
    assert raw_of(stranding, columns, Request({"VCPU": 1, "FPGA": 1})) == none | {"both": -1.0, "fpga": 0.0}
    assert raw_of(stranding, columns, Request({"FPGA": 1, "CUSTOM_SEAT": 1})) == dict.fromkeys(none, 0.0)


def test_a_class_is_scarce_up_to_the_part_of_the_hosts_that_the_setting_names() -> None:
    half = columns_of(a=BOX, b=BOX, c=CI, d=CI)
    assert raw_of(weigher("stranding"), half)["a"] == -1.0
    most = columns_of(a=BOX, b=BOX, c=CI)
    assert raw_of(weigher("stranding"), most) == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert raw_of(weigher("stranding", Settings(spare_up_to=0.7)), most) == {"a": -1.0, "b": -1.0, "c": 0.0}


def test_what_every_machine_usually_has_is_never_scarce() -> None:
    columns = columns_of(a=CI, b=CI, c=CI | {"capacity.DISK_GB": "100"})
    assert weigher("stranding").idle(columns, Request(JOB))


def test_scarce_classes_follow_hosts_that_come_and_go_and_change() -> None:
    columns = lab(boxes=1, machines=1)
    decider = Decider(columns, Settings())

    def first() -> str:
        return decider.decide(Request(JOB), Random(1)).places[0].chosen.host

    assert first() == "ci-0"
    columns.put("box-1", BOX)  # now most hosts have GPUs
    assert first() == "box-0"
    columns.remove("box-1")
    assert first() == "ci-0"
    columns.patch("box-0", {"version": "2"} | {f"capacity.gpu{number}/CUSTOM_GPU_MILLI": "0" for number in range(4)})
    assert first() == "box-0"


def test_claims_leave_what_is_known_of_scarce_classes_as_it_is() -> None:
    """So it costs a decision nothing but to read an array."""
    columns, spared = lab(), Spared(0.5)
    before = spared.hosts(columns)
    placed(columns, Request(JOB), Settings(), 10)
    assert spared.hosts(columns) is before
    columns.patch("ci-1", {"version": "99", "capacity.VCPU": "9"})
    assert spared.hosts(columns) is not before


def test_without_scarce_classes_the_weigher_is_idle() -> None:
    stranding = weigher("stranding")
    assert stranding.idle(columns_of(a=CI, b=CI), Request(JOB))
    assert stranding.idle(columns_of(a=BOX, b=BOX), Request(JOB))
    assert not stranding.idle(lab(), Request(JOB))
