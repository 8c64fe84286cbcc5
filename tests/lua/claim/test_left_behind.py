"""claim.lua, replace.lua: counts of a server group on written-off hosts, for claims that are moved away from there."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.model import Claim, ClaimRule, ClaimStatus, EndReason, GroupPolicy, HostStatus, RuleKind
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimReply, Replacement
from tests.support.builders.cells import HOUR_S, call_of, new_epoch, nothing_written, report_of
from tests.support.builders.counted_claims import ask, causes, counts, group, joining, open_in
from tests.support.builders.placements import arrive, held_claim, settle

AFFINITY, ANTI_AFFINITY = GroupPolicy.AFFINITY, GroupPolicy.ANTI_AFFINITY


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with six hosts: two in each of three zones; each zone is also a rack."""
    for number in range(1, 7):
        zone = (number + 1) // 2
        await open_in(cell, f"h{number}", f"az{zone}", rack=f"r{zone}")
    return cell


async def run_on(cell: CellStore, host: str, *ids: str) -> None:
    """Make members of the group whose work runs on this host."""
    for claim_id in ids:
        answer = await ask(cell, joining(claim_id, host))
        assert answer.outcome is Outcome.OK
        await arrive(cell, claim_id, answer.placed[0])


async def evacuate(
    cell: CellStore,
    claim_id: str,
    *hosts: str,
    lost: tuple[str, ...] = ("h1",),
    rules: tuple[ClaimRule, ...] = (),
    end_reason: EndReason = EndReason.MOVED,
) -> ClaimReply:
    """Request another placement of a claim; `lost` are the hosts that the caller considers written off."""
    claim = (await cell.claims.read([claim_id]))[claim_id]
    member = replace(joining(claim_id, *hosts), replacement=Replacement(claim.host, claim.token, end_reason))
    return await cell.claims.place(replace(call_of(await cell.tick(), member), written_off=lost, rules=rules))


async def make_active(cell: CellStore, answer: ClaimReply, claim_id: str) -> None:
    """Make a claim active at its new placement, and release the former one."""
    await arrive(cell, claim_id, answer.placed[0])
    await settle(cell)


async def come_back(cell: CellStore, host: str, *claims: Claim) -> None:
    """Let a host attest with these claims in its journal."""
    await cell.hosts.report(report_of(host))
    held = [
        held_claim(
            one.claim_id, one.token, ClaimStatus.ACTIVE, one.slots, digest="digest", group="web", counted=one.counted
        )
        for one in claims
    ]
    assert (await cell.hosts.attest(host, "", None, held, (), HOUR_S)).outcome is Outcome.OK


# Under hard affinity


async def test_the_first_of_a_group_goes_anywhere_and_the_others_follow_it(cell: CellStore, raw: Any) -> None:
    await group(cell, policy=AFFINITY)
    await run_on(cell, "h1", "a", "b", "c")
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    first = await evacuate(cell, "a", "h3")
    assert first.outcome is Outcome.OK
    async with nothing_written(raw):
        assert causes(await evacuate(cell, "b", "h4", "h2")) == {"h4": "GROUP", "h2": "GROUP"}
    assert (await evacuate(cell, "b", "h4", "h3")).placed[0].host == "h3"
    await make_active(cell, first, "a")
    assert await counts(raw, cell) == {"members": 4, "host=h1": 2, "host=h3": 2, "zone=az1": 2, "zone=az2": 2}
    assert (await evacuate(cell, "c", "h3")).outcome is Outcome.OK


async def test_of_two_that_were_decided_at_once_for_different_hosts_one_is_refused(cell: CellStore) -> None:
    await group(cell, policy=AFFINITY)
    await run_on(cell, "h1", "a", "b")
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    again = {
        one.claim_id: Replacement("h1", one.token, EndReason.MOVED) for one in (await cell.claims.read("ab")).values()
    }
    clock = await cell.tick()
    calls = [
        replace(call_of(clock, replace(joining(one, host), replacement=again[one])), written_off=("h1",))
        for one, host in (("a", "h2"), ("b", "h3"))
    ]
    answers = [await cell.claims.place(call) for call in calls]
    assert [one.outcome for one in answers] == [Outcome.OK, Outcome.FULL]
    assert causes(answers[1]) == {"h3": "GROUP"}


async def test_who_is_new_finds_the_whole_check(cell: CellStore) -> None:
    """While any member is left behind, and whatever hosts its call names; after that it joins the group where it is."""
    await group(cell, policy=AFFINITY)
    await run_on(cell, "h1", "a", "b")
    await cell.hosts.write_off("h1", evacuate=True, force=True)

    async def join(claim_id: str, *hosts: str) -> ClaimReply:
        return await cell.claims.place(
            replace(call_of(await cell.tick(), joining(claim_id, *hosts)), written_off=("h1",))
        )

    for claim_id in "ab":
        assert causes(await join("new", "h2", "h3")) == {"h2": "GROUP", "h3": "GROUP"}
        await make_active(cell, await evacuate(cell, claim_id, "h2"), claim_id)
    assert causes(await join("new", "h3")) == {"h3": "GROUP"}
    assert (await join("new", "h2")).outcome is Outcome.OK


async def test_a_host_that_comes_back_in_the_middle_holds_its_members_again(cell: CellStore, raw: Any) -> None:
    """Members that were moved stay away, so the group is split: no claim can join it, and both parts are counted."""
    await group(cell, policy=AFFINITY)
    await run_on(cell, "h1", "a", "b")
    held = (await cell.claims.read("ab")).values()
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    await make_active(cell, await evacuate(cell, "a", "h2"), "a")
    await come_back(cell, "h1", *held)
    assert await cell.hosts.claim_ids("h1") == {"a", "b"}
    await stop_on(cell, "h1")
    assert await cell.hosts.claim_ids("h1") == {"b"}
    await cell.hosts.set_status("h1", HostStatus.ENABLED)
    assert causes(await evacuate(cell, "b", "h3")) == {"h3": "GROUP"}
    assert causes(await ask(cell, joining("new", "h1", "h2", "h3"))) == dict.fromkeys(("h1", "h2", "h3"), "GROUP")
    found = await counts(raw, cell)
    assert (found["members"], found["host=h1"], found["host=h2"]) == (2, 1, 1)
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    assert (await evacuate(cell, "b", "h3", "h2")).placed[0].host == "h2"


async def stop_on(cell: CellStore, host: str) -> None:
    """End the placements on a host that are no longer wanted."""
    await settle(cell)
    for claim in (await cell.claims.read(await cell.hosts.claim_ids(host))).values():
        here = claim.on(host)
        if here and here.state is ClaimStatus.ENDING:
            await cell.claims.gone(host, here.claim_id, here.token, EndReason.MOVED, {})


async def move(cell: CellStore, *ids: str, to: tuple[str, ...]) -> ClaimReply:
    """Request other placements of claims on hosts that work, all in one call."""
    claims = await cell.claims.read(ids)
    again = [Replacement(one.host, one.token, EndReason.MOVED) for one in claims.values()]
    members = [replace(joining(one, *to), replacement=of) for one, of in zip(ids, again, strict=True)]
    return await cell.claims.place(replace(call_of(await cell.tick(), *members), fresh=True))


@pytest.mark.parametrize("by", ["host", "zone", "label:rack"])
async def test_a_group_leaves_a_host_that_works_in_one_call(cell: CellStore, raw: Any, by: str) -> None:
    """All of it or none. Until the moves are complete, no claim can join the group on either side."""
    await group(cell, policy=AFFINITY, by=by)
    await run_on(cell, "h1", "a", "b", "c")
    async with nothing_written(raw):
        assert causes(await move(cell, "a", "b", to=("h3",))) == {"h3": "GROUP"}
    answer = await move(cell, "a", "b", "c", to=("h3", "h5"))
    assert [one.host for one in answer.placed] == ["h3", "h3", "h3"]
    assert (await move(cell, "a", "b", "c", to=("h5",))).outcome is Outcome.ALREADY_DONE
    assert causes(await ask(cell, joining("new", "h1", "h3"))) == {"h1": "GROUP", "h3": "GROUP"}
    for claim_id, placed in zip("abc", answer.placed, strict=True):
        await arrive(cell, claim_id, placed)
    await stop_on(cell, "h1")
    found = await counts(raw, cell)
    assert (found["members"], found["host=h3"], found["zone=az2"]) == (3, 3, 3)
    assert "host=h1" not in found


async def test_one_member_goes_where_all_others_are_and_nowhere_else(cell: CellStore) -> None:
    """A member whose move with the others has failed; the only member of a group can go anywhere."""
    await group(cell, policy=AFFINITY)
    await run_on(cell, "h1", "a")
    assert (await move(cell, "a", to=("h3",))).outcome is Outcome.OK
    await cell.claims.release("h1", "a")
    await stop_on(cell, "h1")
    await run_on(cell, "h1", "b", "c")
    answer = await move(cell, "b", "c", to=("h3",))
    await arrive(cell, "b", answer.placed[0])
    await cell.claims.fail("h3", "c", answer.placed[1].token, by_host=True)
    await stop_on(cell, "h1")
    assert causes(await move(cell, "c", to=("h5",))) == {"h5": "GROUP"}
    assert (await move(cell, "c", to=("h3",))).outcome is Outcome.OK


@pytest.mark.parametrize("how", ["down", "draining", "not named"])
async def test_a_host_that_was_not_written_off_or_not_named_holds_its_members(
    cell: CellStore, raw: Any, how: str
) -> None:
    await group(cell, policy=AFFINITY)
    await run_on(cell, "h1", "a", "b")
    if how == "down":
        await raw.hset(cell.keys.host("h1"), "alive_until_ms", "0")
    elif how == "draining":
        await cell.hosts.set_status("h1", HostStatus.DRAINING, move=True)
    else:
        await cell.hosts.write_off("h1", evacuate=True, force=True)
    assert causes(await evacuate(cell, "a", "h2", lost=() if how == "not named" else ("h1",))) == {"h2": "GROUP"}


async def test_members_where_somebody_lives_are_followed(cell: CellStore) -> None:
    """A living host that the caller considers lost is not: by zone, the members left there determine the target."""
    await group(cell, policy=AFFINITY, by="zone")
    await run_on(cell, "h1", "a")
    await run_on(cell, "h2", "b")
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    assert causes(await evacuate(cell, "a", "h3", lost=("h1", "h2"))) == {"h3": "GROUP"}
    assert (await evacuate(cell, "a", "h3", "h2", lost=("h1", "h2"))).placed[0].host == "h2"


@pytest.mark.parametrize("by", ["zone", "label:rack"])
async def test_a_group_leaves_several_hosts_that_were_written_off_together(cell: CellStore, by: str) -> None:
    """Otherwise the members on each written-off host would hold back those on the others."""
    await group(cell, policy=AFFINITY, by=by)
    await run_on(cell, "h1", "a")
    await run_on(cell, "h2", "b")
    both = ("h1", "h2")
    for host in both:
        await cell.hosts.write_off(host, evacuate=True, force=True)
    assert causes(await evacuate(cell, "a", "h3", lost=("h1",))) == {"h3": "GROUP"}
    assert (await evacuate(cell, "a", "h3", lost=both)).outcome is Outcome.OK
    assert (await evacuate(cell, "b", "h5", "h4", lost=both)).placed[0].host == "h4"


async def test_a_group_whose_new_host_dies_too_continues_to_a_third(cell: CellStore) -> None:
    await group(cell, policy=AFFINITY)
    await run_on(cell, "h1", "a", "b")
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    await make_active(cell, await evacuate(cell, "a", "h2"), "a")
    await cell.hosts.write_off("h2", evacuate=True, force=True)
    both = ("h1", "h2")
    assert (await evacuate(cell, "a", "h3", lost=both)).outcome is Outcome.OK
    assert (await evacuate(cell, "b", "h4", "h3", lost=both)).placed[0].host == "h3"


async def test_a_group_leaves_a_host_whose_zone_has_changed_since_its_members_came(cell: CellStore) -> None:
    """They are counted in the former zone, so those counts are left behind; the present zone is one like any other."""
    await group(cell, policy=AFFINITY, by="zone")
    await run_on(cell, "h1", "a", "b")
    await open_in(cell, "h1", "az2", rack="r1")
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    await make_active(cell, await evacuate(cell, "a", "h3"), "a")
    assert (await evacuate(cell, "b", "h2", "h5", "h4")).placed[0].host == "h4"


async def test_a_zone_that_another_host_has_changed_to_is_not_counted_below_nothing(cell: CellStore) -> None:
    await group(cell, policy=AFFINITY, by="zone")
    await run_on(cell, "h1", "a")
    await run_on(cell, "h2", "b")
    await open_in(cell, "h2", "az2", rack="r1")
    for host in ("h1", "h2"):
        await cell.hosts.write_off(host, evacuate=True, force=True)
    assert (await evacuate(cell, "a", "h3", lost=("h1", "h2"))).outcome is Outcome.OK


async def test_a_count_that_nobody_can_read_lets_nobody_go(cell: CellStore, raw: Any) -> None:
    await group(cell, policy=AFFINITY)
    await run_on(cell, "h1", "a")
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    await raw.hset(cell.keys.server_group("web"), "count.host=h1", "-1")
    assert causes(await evacuate(cell, "a", "h2")) == {"h2": "GROUP"}


async def test_what_is_shelved_is_not_left_behind(cell: CellStore) -> None:
    """A shelved claim counts nowhere any more, and joins the group like any other."""
    await group(cell, policy=AFFINITY)
    await run_on(cell, "h1", "a", "b")
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    token = (await cell.claims.read("a"))["a"].token
    assert (await cell.claims.shelve("h1", "a", token)).outcome is Outcome.OK
    assert causes(await evacuate(cell, "a", "h2", end_reason=EndReason.SHELVED)) == {"h2": "GROUP"}


async def test_in_an_epoch_that_has_not_settled_it_is_not_reported(cell: CellStore) -> None:
    """Other members of the group may not have been restored yet."""
    await group(cell, policy=AFFINITY)
    await run_on(cell, "h1", "a")
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    await new_epoch(cell)
    await come_back(cell, "h2")
    assert (await evacuate(cell, "a", "h2")).outcome is Outcome.SETTLING


# Under the other rules


@pytest.mark.parametrize("by", ["zone", "label:rack"])
async def test_what_is_to_be_moved_takes_no_place_of_its_own_group(cell: CellStore, by: str) -> None:
    """One member per zone: only the other host of its own zone is free, and only once its own host no longer works."""
    await group(cell, policy=ANTI_AFFINITY, by=by)
    for claim_id, host in (("a", "h1"), ("b", "h3"), ("c", "h5")):
        await run_on(cell, host, claim_id)
    everywhere = ("h4", "h6", "h2")
    assert causes(await evacuate(cell, "a", *everywhere)) == dict.fromkeys(everywhere, "GROUP")
    for host in ("h1", "h3"):
        await cell.hosts.write_off(host, evacuate=True, force=True)
    moved = await evacuate(cell, "a", *everywhere)
    assert moved.placed[0].host == "h2"
    assert causes(await ask(cell, joining("new", "h2", "h4"))) == {"h2": "GROUP", "h4": "GROUP"}
    await make_active(cell, moved, "a")
    assert (await evacuate(cell, "b", "h2", "h4")).placed[0].host == "h4"


@pytest.mark.parametrize("lost", [True, False])
async def test_spreading_counts_what_will_be_when_the_former_is_gone(cell: CellStore, lost: bool) -> None:
    """2, 2 and 2 in the zones: without the placement on the dead host its own zone has the least, and may be reused."""
    await group(cell)
    for claim_ids, host in (("ab", "h1"), ("cd", "h3"), ("ef", "h5")):
        await run_on(cell, host, *claim_ids)
    if lost:
        await cell.hosts.write_off("h1", evacuate=True, force=True)
    rule = ClaimRule(RuleKind.SKEW, "zone", (0,), "web", 1, ("az1", "az2", "az3"))
    answer = await evacuate(cell, "a", "h4", "h2", rules=(rule,))
    assert answer.placed[0].host == ("h2" if lost else "h4")


async def test_what_is_not_counted_by_a_label_is_left_behind_where_it_is(cell: CellStore) -> None:
    """A placement outside all racks counts in none."""
    await open_in(cell, "h7", "az1")
    await group(cell, policy=ANTI_AFFINITY, by="label:rack")
    await group(cell, name="other", policy=ANTI_AFFINITY, by="zone", count_by=("label:rack",))
    await arrive(cell, "x", (await ask(cell, joining("x", "h7", to="other"))).placed[0])
    await cell.hosts.write_off("h7", evacuate=True, force=True)
    claim = (await cell.claims.read("x"))["x"]
    member = replace(joining("x", "h1", to="other"), replacement=Replacement("h7", claim.token, EndReason.MOVED))
    assert (await cell.claims.place(call_of(await cell.tick(), member))).outcome is Outcome.OK
