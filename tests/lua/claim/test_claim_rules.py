"""claim.lua: rules about other placements (apart, together, skew), the counts of groups, and limits of hosts."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.model import ClaimRule, GroupPolicy, HostLimit, RuleKind
from redsched.model.declared import MAX_TOPOLOGIES
from redsched.store.cell import CellStore
from redsched.store.client.scripts import load_all
from redsched.store.codec.claim_codec import ClaimWire
from redsched.store.codec.keys import Keys
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Clock
from tests.support.builders.cells import active, call_of, claim_on, known, member, new_epoch, nothing_written
from tests.support.builders.counted_claims import ask, causes, counts, given, group, joining, open_in

APART, TOGETHER, SKEW = RuleKind.APART, RuleKind.TOGETHER, RuleKind.SKEW


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with four hosts, two in each of two zones: h1 and h3 in rack r1, h2 in r2, h4 in none."""
    await open_in(cell, "h1", "az1", rack="r1")
    await open_in(cell, "h2", "az1", rack="r2")
    await open_in(cell, "h3", "az2", rack="r1")
    await open_in(cell, "h4", "az2")
    return cell


async def test_a_member_is_counted_by_host_zone_and_every_label_of_its_group(cell: CellStore, raw: Any) -> None:
    await group(cell, count_by=("label:rack", "label:row"))
    clock = await cell.tick()
    version = int(await raw.hget(cell.keys.server_group("web"), "version"))
    answer = await ask(cell, joining("a", "h1"), joining("b", "h4"), joining("c", "h1"))
    assert answer.outcome is Outcome.OK
    assert await counts(raw, cell) == {
        "members": 3,
        "host=h1": 2,
        "host=h4": 1,
        "zone=az1": 2,
        "zone=az2": 1,
        "label:rack=r1": 2,
    }
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > clock.seq]
    assert [(one.kind, one.name, one.more) for one in entries] == [
        ("host", "h1", 3),
        ("host", "h4", 2),
        ("host", "h1", 1),
        ("server-group", "web", 0),
    ]
    told = {"members": "3"} | {f"count.{one}": str(n) for one, n in (await counts(raw, cell)).items() if "=" in one}
    assert (dict(entries[-1].fields), entries[-1].version, entries[-1].op) == (told, version + 1, "claimed")
    (thing,) = answer.objects
    assert (thing.kind, thing.name, thing.version, dict(thing.fields)) == ("server-group", "web", version + 1, told)
    assert await raw.hget(cell.keys.server_group("web"), "version") == str(version + 1)
    claims = await cell.claims.read("ab")
    assert (claims["a"].server_group, claims["a"].counted) == ("web", {"zone": "az1", "label:rack": "r1"})
    assert (claims["b"].server_group, claims["b"].counted) == ("web", {"zone": "az2"})


async def test_the_same_call_again_counts_nothing(cell: CellStore, raw: Any) -> None:
    await group(cell, policy=GroupPolicy.ANTI_AFFINITY)
    call = call_of(await cell.tick(), joining("a", "h1"))
    first = await cell.claims.place(call)
    async with nothing_written(raw):
        again = await cell.claims.place(call)
    assert (again.outcome, again.placed, again.objects) == (Outcome.ALREADY_DONE, known(*first.placed), ())


async def test_a_group_that_nobody_declared_is_unknown(cell: CellStore, raw: Any) -> None:
    """Whether a member or a rule names it; also if claims have left counts in it."""
    await raw.hset(cell.keys.server_group("left"), mapping={"version": "7", "members": "1", "count.host=h1": "1"})
    rule = ClaimRule(APART, "host", (0,), "none")
    async with nothing_written(raw):
        answer = await ask(cell, joining("a", "h1", to="left"), rules=(rule,))
    assert (answer.outcome, set(answer.unknown)) == (Outcome.UNKNOWN, {"server-group:left", "server-group:none"})


@pytest.mark.parametrize(
    ("by", "first", "passed", "taken"),
    [
        ("host", "h1", ["h1"], "h2"),
        ("zone", "h1", ["h1", "h2"], "h3"),
        ("label:rack", "h1", ["h1", "h3", "h4"], "h2"),
    ],
)
async def test_apart_from_the_members_of_a_group(
    cell: CellStore, raw: Any, by: str, first: str, passed: list[str], taken: str
) -> None:
    """A host outside all domains is refused too; the next candidate is tried in the same call."""
    await group(cell, count_by=("label:rack",))
    await given(cell, joining("a", first))
    rule = ClaimRule(APART, by, (0,), "web")
    async with nothing_written(raw):
        refused = await ask(cell, joining("b", *passed), rules=(rule,))
    assert causes(refused) == dict.fromkeys(passed, "GROUP")
    assert await given(cell, joining("b", *passed, taken), rules=(rule,)) == [taken]


async def test_at_most_so_many_in_one_domain(cell: CellStore) -> None:
    await group(cell)
    rule = ClaimRule(APART, "zone", (0, 1, 2), "web", most=2)
    assert await given(cell, *(joining(one, "h1", "h2", "h3") for one in "abc"), rules=(rule,)) == ["h1", "h1", "h3"]


@pytest.mark.parametrize(
    ("by", "barred", "taken"), [("host", "h2", "h1"), ("zone", "h3", "h2"), ("label:rack", "h4", "h3")]
)
async def test_together_with_the_members_of_a_group(cell: CellStore, by: str, barred: str, taken: str) -> None:
    await group(cell, count_by=("label:rack",))
    await given(cell, joining("a", "h1"))
    rule = ClaimRule(TOGETHER, by, (0,), "web")
    assert causes(await ask(cell, joining("b", barred), rules=(rule,))) == {barred: "GROUP"}
    assert await given(cell, joining("b", barred, taken), rules=(rule,)) == [taken]


async def test_no_place_is_together_with_members_in_two_domains(cell: CellStore) -> None:
    await group(cell)
    await given(cell, joining("a", "h1"), joining("b", "h3"))
    refused = await ask(cell, joining("c", "h1", "h3"), rules=(ClaimRule(TOGETHER, "zone", (0,), "web"),))
    assert causes(refused) == {"h1": "GROUP", "h3": "GROUP"}
    assert await given(cell, joining("c", "h4"), rules=(ClaimRule(TOGETHER, "zone", (0,)),)) == ["h4"]


async def test_a_member_whom_nobody_counted_there_is_together_with_none(cell: CellStore) -> None:
    """It may run in any domain."""
    await group(cell, count_by=("label:rack",))
    await given(cell, joining("a", "h4"), joining("b", "h1"))
    refused = await ask(cell, joining("c", "h1", "h3"), rules=(ClaimRule(TOGETHER, "label:rack", (0,), "web"),))
    assert causes(refused) == {"h1": "GROUP", "h3": "GROUP"}


async def test_a_group_counts_by_as_many_topologies_as_it_may_have(cell: CellStore, raw: Any) -> None:
    labels = [f"l{number}" for number in range(MAX_TOPOLOGIES)]
    await open_in(cell, "h5", "az1", 8, **dict.fromkeys(labels, "x"))
    await group(cell, by="label:l0", count_by=tuple(f"label:{one}" for one in labels))
    await given(cell, joining("a", "h5"))
    expected = {"members": 1, "host=h5": 1, "zone=az1": 1} | {f"label:{one}=x": 1 for one in labels}
    assert await counts(raw, cell) == expected


async def test_the_least_rises_as_the_places_of_one_call_fill_it(cell: CellStore) -> None:
    """A domain that is listed twice counts once, and one that is not listed is never the least."""
    await group(cell)
    await given(cell, joining("a", "h1"), joining("b", "h1"), joining("c", "h3"))
    zones = ("az1", "az2", "az2")
    rule = ClaimRule(SKEW, "zone", tuple(range(5)), "web", 1, zones)
    assert await given(cell, *(joining(f"d{n}", "h1", "h3") for n in range(5)), rules=(rule,)) == [
        "h3",
        "h1",
        "h3",
        "h1",
        "h3",
    ]
    by_host = ClaimRule(SKEW, "host", tuple(range(4)), "web", 1, ("h2", "h4"))
    members = (joining(f"e{n}", "h1", "h2", "h4") for n in range(4))
    assert await given(cell, *members, rules=(by_host,)) == ["h2", "h4", "h2", "h4"]


async def test_the_skew_is_held_against_the_emptiest_domain(cell: CellStore, raw: Any) -> None:
    """A listed zone that is empty counts as 0; an unlisted one is ignored."""
    await group(cell)
    await given(cell, joining("a", "h1"), joining("b", "h3"))
    both, three = ("az1", "az2"), ("az1", "az2", "az9")
    assert await given(cell, joining("c", "h1"), rules=(ClaimRule(SKEW, "zone", (0,), "web", 1, both),)) == ["h1"]
    rule = ClaimRule(SKEW, "zone", (0,), "web", 1, both)
    assert await given(cell, joining("d", "h2", "h4"), rules=(rule,)) == ["h4"]
    async with nothing_written(raw):
        refused = await ask(cell, joining("e", "h1", "h3"), rules=(ClaimRule(SKEW, "zone", (0,), "web", 2, three),))
    assert causes(refused) == {"h1": "GROUP", "h3": "GROUP"}
    assert await given(cell, joining("e", "h1"), rules=(ClaimRule(SKEW, "zone", (0,), "web", 3, three),)) == ["h1"]


async def test_members_of_one_call_keep_to_rules_among_themselves(cell: CellStore, raw: Any) -> None:
    """Without a group, only the members that the rule names count; all members of the call are placed, or none."""
    members = [member(one, "h1", "h2", "h3", "h4") for one in "abc"]
    assert await given(cell, *members, rules=(ClaimRule(APART, "host", (0, 2)),)) == ["h1", "h1", "h2"]
    together = ClaimRule(TOGETHER, "zone", (0, 1))
    pair = [member("d", "h3"), member("e", "h1", "h4")]
    assert await given(cell, *pair, rules=(together,)) == ["h3", "h4"]
    spread = ClaimRule(SKEW, "zone", (0, 1, 2), "", 1, ("az1", "az2"))
    trio = [member(one, "h1", "h2", "h3") for one in "fgh"]
    assert await given(cell, *trio, rules=(spread,)) == ["h1", "h3", "h1"]
    async with nothing_written(raw):
        refused = await ask(
            cell, *(member(one, "h1", "h2") for one in "ijk"), rules=(ClaimRule(APART, "host", (0, 1, 2)),)
        )
    assert causes(refused) == {"h1": "GROUP", "h2": "GROUP"}


async def test_a_whole_call_is_refused_for_the_last_of_a_group(cell: CellStore, raw: Any) -> None:
    await group(cell)
    rule = ClaimRule(APART, "zone", (0, 1, 2), "web")
    async with nothing_written(raw):
        answer = await ask(cell, *(joining(one, "h1", "h2", "h3", "h4") for one in "abc"), rules=(rule,))
    assert answer.outcome is Outcome.FULL
    assert {one.host: (one.claims, one.starting) for one in answer.looked_at} == dict.fromkeys(
        ("h1", "h2", "h3", "h4"), (0, 0)
    )


@pytest.mark.parametrize(
    ("policy", "most", "hosts"),
    [
        (GroupPolicy.ANTI_AFFINITY, 1, ["h1", "h2"]),
        (GroupPolicy.ANTI_AFFINITY, 2, ["h1", "h1", "h2"]),
        (GroupPolicy.AFFINITY, 1, ["h1", "h1", "h1"]),
    ],
)
async def test_a_groups_own_hard_policy_holds_without_a_rule(
    cell: CellStore, policy: GroupPolicy, most: int, hosts: list[str]
) -> None:
    """A scheduler whose replica is behind does not have the policy; the script reads it."""
    await group(cell, policy=policy, most=most)
    assert [(await given(cell, joining(f"c{n}", "h1", "h2")))[0] for n in range(len(hosts))] == hosts


async def test_a_soft_policy_bars_nothing(cell: CellStore) -> None:
    await group(cell, policy=GroupPolicy.SOFT_ANTI_AFFINITY)
    assert await given(cell, *(joining(one, "h1", "h2") for one in "abc")) == ["h1", "h1", "h1"]


async def test_limits_of_a_host_count_this_calls_members_too(cell: CellStore, raw: Any) -> None:
    await active(cell, "a", "h1")
    await claim_on(cell, "b", "h1")
    limits = {"h1": HostLimit(claims=3), "h2": HostLimit(starting=1), "h9": HostLimit(claims=1)}
    answer = await ask(cell, *(member(one, "h1", "h2", "h3") for one in "cde"), limits=limits)
    assert [one.host for one in answer.placed] == ["h1", "h2", "h3"]
    assert {one.host: (one.cause, one.claims, one.starting) for one in answer.looked_at} == {
        "h1": ("LIMIT", 3, 2),
        "h2": ("LIMIT", 1, 1),
        "h3": ("", 1, 1),
    }
    async with nothing_written(raw):
        assert causes(await ask(cell, member("f", "h1", "h2"), limits=limits)) == {"h1": "LIMIT", "h2": "LIMIT"}
        assert causes(await ask(cell, member("f", "h1"), limits={"h1": HostLimit(starting=2)})) == {"h1": "LIMIT"}


@pytest.mark.parametrize("field", ["members", "count.zone=az1", "count.host=h1", "max_per_host"])
@pytest.mark.parametrize("value", ["nan", "-1", "2.5", "abc"])
async def test_damaged_counts_of_a_group_let_nothing_in(cell: CellStore, raw: Any, field: str, value: str) -> None:
    await group(cell, policy=GroupPolicy.ANTI_AFFINITY, most=9)
    await raw.hset(cell.keys.server_group("web"), field, value)
    rules = (ClaimRule(APART, "zone", (0,), "web", 9), ClaimRule(SKEW, "zone", (0,), "web", 9, ("az1", "az2")))
    async with nothing_written(raw):
        refused = await ask(cell, joining("a", "h1"), rules=rules)
    assert causes(refused) == {"h1": "GROUP"}


async def test_damaged_counts_of_a_host_let_nothing_in_where_they_are_limited(cell: CellStore, raw: Any) -> None:
    await raw.hset(cell.keys.host("h1"), "claims", "nan")
    await raw.hset(cell.keys.host("h2"), "starting", "-1")
    limit = HostLimit(9, 9)
    refused = await ask(cell, member("a", "h1", "h2"), limits={"h1": limit, "h2": limit})
    assert causes(refused) == {"h1": "LIMIT", "h2": "LIMIT"}
    await claim_on(cell, "a", "h1")


async def test_what_counts_members_everywhere_waits_for_all_hosts(cell: CellStore, raw: Any) -> None:
    """A host that has not attested may hold members that the store has lost. Joining a soft group does not wait."""
    await group(cell, "soft")
    await group(cell, "hard", GroupPolicy.ANTI_AFFINITY)
    first = call_of(await cell.tick(), joining("known", "h1", to="hard"))
    await cell.claims.place(first)
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch)
    for rule in (ClaimRule(APART, "host", (0,), "soft"), ClaimRule(SKEW, "zone", (0,), "", 1, ("az1",))):
        assert (await ask(cell, member("a", "h1"), rules=(rule,))).outcome is Outcome.SETTLING
    assert (await ask(cell, joining("a", "h1", to="hard"))).outcome is Outcome.SETTLING
    assert (await cell.claims.place(first)).outcome is Outcome.ALREADY_DONE
    await given(cell, joining("a", "h1", to="soft"))
    await given(cell, member("b", "h1"), rules=(ClaimRule(APART, "host", (0,)),))


def test_a_call_without_conditions_carries_nothing_for_them() -> None:
    """An ordinary call does not pay for conditions that it does not use."""
    call = call_of(Clock("1-a", 1, 1, True), member("a", "h1"))
    wire = ClaimWire(Keys("c1"), call)
    named, amounts, members = len(load_all()["claim"].arguments.names), 3, 2
    assert (len(wire.keys), wire.objects) == (8, ())
    assert len(wire.arguments) == named + 2 * len(call.carried) + amounts + members
    limited = ClaimWire(Keys("c1"), replace(call, limits={"h1": HostLimit(1)}))
    assert limited.arguments[: len(wire.arguments)] == wire.arguments
