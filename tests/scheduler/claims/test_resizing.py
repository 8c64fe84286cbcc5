"""Resizing in place: which amounts of a claim change, by slot or by class, and what is refused."""

from dataclasses import replace

import pytest

from redsched.errors import ClaimState, InvalidRequest, NoValidHost, StaleToken
from redsched.model import Claim, ClaimStatus, HostReport, Inventory, Request
from redsched.model.records.problems import NoValidHostFacts
from redsched.model.reserved_for import ReservedFor
from redsched.scheduler import Scheduler
from redsched.scheduler.claims.resize import absolute
from tests.scheduler.working import BY_HAND, at_work

POOLS = Claim("a", "c1", "h1", ClaimStatus.ACTIVE, "t", {"VCPU": 2, "numa0/PCPU": 1, "numa1/PCPU": 1, "gpu0/VGPU": 1})


@pytest.mark.parametrize(
    ("slots", "resources", "left"),
    [
        ({}, {"VCPU": 4}, {**POOLS.slots, "VCPU": 4}),
        ({}, {"VGPU": 2}, {**POOLS.slots, "gpu0/VGPU": 2}),
        ({}, {"DISK_GB": 5}, {**POOLS.slots, "DISK_GB": 5}),
        ({"numa1/PCPU": 3}, {}, {**POOLS.slots, "numa1/PCPU": 3}),
        ({"numa1/PCPU": 0}, {"VCPU": 0}, {"numa0/PCPU": 1, "gpu0/VGPU": 1}),
    ],
)
def test_what_is_not_named_stays(slots: dict[str, int], resources: dict[str, int], left: dict[str, int]) -> None:
    assert absolute(POOLS, slots, resources) == left


@pytest.mark.parametrize(
    ("slots", "resources", "says"),
    [
        ({}, {"PCPU": 4}, "holds PCPU in several slots: use `slots` to resize one of numa0/PCPU, numa1/PCPU"),
        ({}, {"VCPUS": 4}, "unknown resource class"),
        ({}, {"VCPU": -1}, "VCPU must be"),
        ({"numa0/PCPU": 0, "numa1/PCPU": 0, "gpu0/VGPU": 0}, {"VCPU": 0}, "release it instead"),
    ],
)
def test_what_cannot_be_is_refused(slots: dict[str, int], resources: dict[str, int], says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        absolute(POOLS, slots, resources)
    assert says in refused.value.detail


async def test_a_claim_grows_and_shrinks(clean_store: str) -> None:
    """A claim that no agent has accepted is resized at once; a retry with the old token gets the same answer."""
    async with at_work(clean_store, 8) as work:
        token = (await work.scheduler.select(Request({"VCPU": 2}, claim_ids=("mine",)))).selections[0].token or ""
        grown = await work.scheduler.claims.resize("mine", token, {"VCPU": 6})
        assert (grown.slots, grown.token != token) == ({"VCPU": 6}, True)
        assert (await work.scheduler.claims.resize("mine", token, {"VCPU": 6})).token == grown.token
        with pytest.raises(StaleToken):
            await work.scheduler.claims.resize("mine", token, {"VCPU": 1})
        with pytest.raises(NoValidHost) as refused:
            await work.scheduler.claims.resize("mine", grown.token, {"VCPU": 9})
        assert refused.value.detail == (
            "host h0 has no room for 9 VCPU of claim mine, which may have 8 there: request 8 VCPU, or move it"
        )
        assert refused.value.facts.slot == "VCPU"
        await work.is_sound()


UNITS = [
    ({"step_size": 4}, 8, 6, "step_size", 4, [4, 8], "request 4 VCPU, or keep the 8 that it has, or move it"),
    ({"step_size": 4}, 4, 6, "step_size", 4, [4, 8], "request 8 VCPU, or keep the 4 that it has, or move it"),
    ({"step_size": 4}, 4, 10, "step_size", 4, [8, 12], "request 8 or 12 VCPU, or move it"),
    ({"min_unit": 4}, 6, 2, "min_unit", 4, [4], "request 4 VCPU, or move it"),
    ({"max_unit": 6}, 4, 8, "max_unit", 6, [6], "request 6 VCPU, or move it"),
]


@pytest.mark.parametrize(("units", "held", "asked", "rule", "value", "following", "says"), UNITS)
async def test_a_resize_that_units_forbid_names_them_and_the_next_amounts(
    clean_store: str,
    units: dict[str, int],
    held: int,
    asked: int,
    rule: str,
    value: int,
    following: list[int],
    says: str,
) -> None:
    """They were refused for a lack of room. Each of the next amounts can be had."""
    async with Scheduler.connect(clean_store, BY_HAND) as scheduler:
        await scheduler.init()
        await scheduler.hosts.report(HostReport("h1", {"VCPU": Inventory(16, **units)}, lease_s=3600))
        token = (await scheduler.select(Request({"VCPU": held}, claim_ids=("mine",)))).selections[0].token or ""
        with pytest.raises(NoValidHost) as refused:
            await scheduler.claims.resize("mine", token, {"VCPU": asked})
        assert refused.value.detail == (
            f"the {rule} of VCPU on host h1 is {value}, which forbids {asked} VCPU of claim mine: {says}"
        )
        assert refused.value.facts == NoValidHostFacts(
            claim_id="mine", slot="VCPU", asked=asked, rule=rule, value=value, next=tuple(following)
        )
        for amount in following:
            token = (await scheduler.claims.resize("mine", token, {"VCPU": amount})).token


async def test_more_than_a_host_has_is_a_lack_of_room_although_max_unit_is_lower(clean_store: str) -> None:
    """What the claim may have goes by both."""
    async with Scheduler.connect(clean_store, BY_HAND) as scheduler:
        await scheduler.init()
        await scheduler.hosts.report(HostReport("h1", {"VCPU": Inventory(16, max_unit=6)}, lease_s=3600))
        token = (await scheduler.select(Request({"VCPU": 4}, claim_ids=("mine",)))).selections[0].token or ""
        with pytest.raises(NoValidHost, match="which may have 6 there: request 6 VCPU, or move it"):
            await scheduler.claims.resize("mine", token, {"VCPU": 20})


async def test_a_claim_on_a_host_that_has_shrunk_may_have_nothing_more(clean_store: str) -> None:
    """And not less than nothing, where the other claims exceed the host."""
    async with at_work(clean_store, 8) as work:
        await work.scheduler.select(Request({"VCPU": 6}))
        token = (await work.scheduler.select(Request({"VCPU": 2}, claim_ids=("mine",)))).selections[0].token or ""
        work.hosts[0].report = replace(work.hosts[0].report, inventories={"VCPU": Inventory(4)})
        await work.hosts[0].speak()
        with pytest.raises(NoValidHost) as refused:
            await work.scheduler.claims.resize("mine", token, {"VCPU": 3})
        assert refused.value.detail == (
            "host h0 has no room for 3 VCPU of claim mine, which may have 0 there: keep the 2 that it has, or move it"
        )
        assert (refused.value.facts.value, refused.value.facts.next) == (0, (2,))


async def test_a_resize_into_what_is_kept_for_another_request_says_so(clean_store: str) -> None:
    async with at_work(clean_store, 8) as work:
        token = (await work.scheduler.select(Request({"VCPU": 2}, claim_ids=("mine",)))).selections[0].token or ""
        await work.store.reservations.put("h0", "r", {"VCPU": 4}, 3_600_000, 0, 5, "big", "ml")
        await work.scheduler.cells.catch_up()
        with pytest.raises(
            NoValidHost, match="4 VCPU there are kept for a request that waits: request 4 VCPU"
        ) as refused:
            await work.scheduler.claims.resize("mine", token, {"VCPU": 6})
        assert refused.value.facts.rule == "kept"
        assert refused.value.facts.kept == ReservedFor({"VCPU": 4}, "big", "ml")


async def test_what_runs_holds_both_until_its_host_has_resized_it(clean_store: str) -> None:
    async with at_work(clean_store, 8) as work:
        claim = await work.active(Request({"VCPU": 4}, claim_ids=("mine",)))
        now = await work.scheduler.claims.resize("mine", claim.token, slots={"VCPU": 2})
        assert (now.slots, now.resizing_to) == ({"VCPU": 4}, {"VCPU": 2})
        await work.store.claims.resized("h0", "mine", now.token, {"VCPU": 2})
        done = await work.scheduler.claims.get("mine")
        assert (done.slots, done.resizing_to) == ({"VCPU": 2}, {})


async def test_a_resized_claim_moves_with_the_amounts_that_it_has(clean_store: str) -> None:
    async with at_work(clean_store, 8, 4, 6) as work:
        token = (await work.scheduler.select(Request({"VCPU": 2}, claim_ids=("mine",)))).selections[0].token or ""
        grown = await work.scheduler.claims.resize("mine", token, {"VCPU": 5})
        target = await work.scheduler.claims.move("mine", grown.token)
        assert (target.host, target.slots) == ("h2", {"VCPU": 5})
        with pytest.raises(ClaimState, match="placed elsewhere"):
            await work.scheduler.claims.resize("mine", grown.token, {"VCPU": 6})
