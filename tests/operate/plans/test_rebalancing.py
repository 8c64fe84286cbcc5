"""Moves that reach an aim: as few as needed, possible one after the other, and what they gain is there afterwards."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from redsched.decide.work_limit import TooMuchWork
from redsched.errors import ClaimState, InvalidRequest
from redsched.model import Claim, Group, GroupPolicy, HostReport, Request, ServerGroup, Spread
from redsched.model.claims import LOCAL
from redsched.model.records.plans import Aim, Move, RebalancePlan
from redsched.operate.plans.movers import Mover
from redsched.operate.plans.rebalancing import RebalanceQuestion, VerifyQuestion, check_aim
from redsched.operate.plans.relocation import Relocation
from tests.operate.plans.parts import MILLI, Plans, archive, claim, copy, host

SMALL, LARGE = Request({"VCPU": 2}), Request({"VCPU": 8})
BOUND = Request({"VCPU": 26}, hosts=frozenset({"c"}))
SPREAD = Request({"VCPU": 4}, count=2, spread=(Spread("host"),))
FLEET = [host(name, VCPU=8) for name in ("a", "b", "c")]
USED = {"one": ("a", SMALL), "two": ("b", SMALL), "three": ("c", SMALL), "four": ("c", SMALL)}


def went(plan: RebalancePlan) -> Mapping[str, str]:
    return {one.claim_id: one.target for one in plan.moves}


def test_room_is_made_with_as_few_moves_as_needed() -> None:
    """Two hosts are cleared onto the third, which has most; the last move of each says what it makes possible."""
    found = Plans(archive(FLEET, USED)).rebalance(Aim.REQUEST, 10, replace(LARGE, count=2))
    assert (went(found), found.before, found.after, found.goal) == ({"one": "c", "two": "c"}, 0, 2, 2)
    assert [one.gain for one in found.moves] == ["a takes one more", "b takes one more"]
    assert [one.source for one in found.moves] == ["a", "b"]


def test_no_more_moves_are_planned_than_allowed_or_needed() -> None:
    one = Plans(archive(FLEET, USED))
    assert one.rebalance(Aim.REQUEST, 1, replace(LARGE, count=3)).after == 1
    assert one.rebalance(Aim.REQUEST, 10, replace(LARGE, count=3)).after == 2
    fits = one.rebalance(Aim.REQUEST, 10, Request({"VCPU": 6}))
    assert (fits.moves, fits.before, fits.after) == ((), 1, 1)


def test_claims_do_not_go_to_hosts_that_are_cleared_next() -> None:
    """Though the policy prefers that host, as it is fuller."""
    one = {"p": ("a", SMALL), "q": ("b", Request({"VCPU": 3})), "r": ("c", Request({"VCPU": 1}))}
    found = Plans(archive(FLEET, {**one, "s": ("c", Request({"VCPU": 1}))})).rebalance(
        Aim.REQUEST, 2, replace(LARGE, count=2)
    )
    assert (went(found), found.after) == ({"p": "c", "q": "c"}, 2)


def test_a_host_that_cannot_be_cleared_leaves_no_moves() -> None:
    """The larger of its claims could leave, but not the other one."""
    bound = Request({"VCPU": 3}, hosts=frozenset({"a", "full"}))
    fixed = Request({"VCPU": 4}, hosts=frozenset({"b"}))
    fleet = [host("a", VCPU=8), host("b", VCPU=8), host("full", VCPU=1)]
    one = archive(fleet, {"x": ("a", Request({"VCPU": 4})), "y": ("a", bound), "z": ("b", fixed)})
    found = Plans(one).rebalance(Aim.REQUEST, 5, LARGE)
    assert (found.moves, found.after) == ((), 0)


@pytest.mark.parametrize("aim", [Aim.REQUEST, Aim.WAITING])
def test_moves_that_made_no_room_in_time_are_left_out(aim: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is up when one of the two claims has left the second host."""
    fleet = [host("a", VCPU=8), host("b", VCPU=8), host("c", VCPU=32)]
    held = {"one": ("a", SMALL), "two": ("b", SMALL), "three": ("b", SMALL), "four": ("c", BOUND)}
    one = archive(fleet, held)
    move, moved = Mover.move, list[str]()

    def until_late(self: Mover, claim: Claim, *rest: Any, **more: Any) -> Move | None:
        if len(moved) == 2:
            raise TooMuchWork("moving", 1.0)
        made = move(self, claim, *rest, **more)
        moved.extend([claim.claim_id] if made else [])
        return made

    monkeypatch.setattr(Mover, "move", until_late)
    wanted = replace(LARGE, hosts=frozenset({"a", "b"}))
    request = {"request": replace(wanted, count=2)} if aim is Aim.REQUEST else {"waiting": (wanted, wanted)}
    found = RebalanceQuestion(aim, 10, **request)(copy(one))
    assert (len(moved), found.is_cut, found.after) == (2, True, 1)
    assert went(found).keys() == {"one"}


def test_what_waits_with_a_hard_spread_gets_room_only_as_a_whole() -> None:
    """Taken one by one, its places would ignore each other."""
    tight = archive([host("a", VCPU=8), host("b", VCPU=3)])
    found = RebalanceQuestion(Aim.WAITING, 10, waiting=(SPREAD,))(copy(tight))
    assert (found.after, found.moves) == (0, ())
    wide = archive([host("a", VCPU=8), host("b", VCPU=4)])
    assert RebalanceQuestion(Aim.WAITING, 10, waiting=(SPREAD,))(copy(wide)).after == 1


def test_whole_gpus_are_gathered() -> None:
    """The host with one small share is cleared, and not the one with three."""
    share = Request({"VCPU": 1}, groups=(Group("gpu", {MILLI: 300}),))
    fleet = [host(name, 2, VCPU=16) for name in ("a", "b", "c")]
    held = {"s1": ("a", "gpu0"), "s2": ("b", "gpu0"), "s3": ("b", "gpu1"), "s4": ("b", "gpu1"), "s5": ("c", "gpu0")}
    others = {
        name: claim(where, share, number, {"VCPU": 1, f"{gpu}/{MILLI}": 300})
        for number, (name, (where, gpu)) in enumerate(held.items(), 1)
    }
    whole = Request({"VCPU": 1}, groups=tuple(Group(f"g{n}", {MILLI: 1000}) for n in range(2)), group_policy="isolate")
    found = Plans(archive(fleet, others=others, requests=(share,))).rebalance(Aim.REQUEST, 5, whole)
    assert (len(found.moves), found.after) == (1, 1)
    assert found.moves[0].claim_id in ("s1", "s5")


def test_what_may_not_be_moved_stays() -> None:
    """Claims that are bound to a host, not active, of a gang that waits, or of an unknown request; and their groups."""
    bound = replace(SMALL, hosts=frozenset({"a"}))
    of_group = replace(SMALL, server_group="apart")
    others = {
        "bound": claim("a", bound, 1),
        "starting": claim("b", SMALL, 2, state="starting"),
        "early": claim("c", SMALL, 3, gang="early"),
        "later": claim("c", SMALL, 4, gang="early", state="claimed"),
        "unknown": claim("d", Request({"VCPU": 3}), 5),
        "grouped": claim("e", of_group, 6),
        "near": claim("f", of_group, 7),
    }
    fleet = [host(name, VCPU=8) for name in "abcdef"]
    one = archive(
        fleet,
        others=others,
        requests=(bound, SMALL, of_group),
        groups=(ServerGroup("apart", GroupPolicy.ANTI_AFFINITY),),
    )
    found = Plans(one).rebalance(Aim.REQUEST, 10, replace(LARGE, count=6))
    assert went(found).keys() <= {"grouped", "near"}
    assert found.after == 2
    targets = [*went(found).values()]
    assert len(targets) == len(set(targets))


def test_claims_that_the_ordinary_move_refuses_are_not_considered() -> None:
    """Of a gang that waits, or made by the host: each would be found to be stuck only later."""
    others = {
        "early": claim("a", SMALL, 1, gang="early"),
        "later": claim("b", SMALL, 2, gang="early", state="claimed"),
        "local": claim("a", SMALL, 3, digest=LOCAL),
        "free": claim("a", SMALL, 4),
    }
    mover = Mover(copy(archive(FLEET, others=others, requests=(SMALL,))), 5)
    assert [one.claim_id for one in mover.on("a")] == ["free"]
    assert mover.on("b") == []


def test_claims_that_wait_get_room() -> None:
    waits = claim("", LARGE, 9, {}, state="ended", retry_root="1-a.9", retry_from="1-a.9")
    one = archive(FLEET, USED, {"waits": {**waits, "host": "a", "end_reason": "failed"}}, requests=(LARGE,))
    assert [claim.claim_id for claim in copy(one).pending()] == ["waits"]
    found = Plans(one).rebalance(Aim.WAITING, 10)
    assert (found.before, found.after, found.goal, len(found.moves)) == (0, 1, 1, 1)
    question = RebalanceQuestion(Aim.WAITING, 10, waiting=(LARGE, Request({"VCPU": 100})))
    more = question(copy(one))
    assert (more.before, more.after, more.goal, len(more.moves)) == (0, 2, 3, 2)


def test_hosts_are_emptied_those_with_fewest_claims_first() -> None:
    found = Plans(archive(FLEET, USED)).rebalance(Aim.DRAIN, 2, hosts=["c", "a"])
    assert (set(went(found)), found.before, found.after) == ({"one", "four"}, 3, 1)
    assert set(went(found).values()) == {"b"}
    assert [one.gain for one in found.moves] == ["a is empty", "1 left on c"]


def test_a_policy_is_followed() -> None:
    """pack gathers the claims on one host, spread leaves them where they are."""
    one = Plans(archive(FLEET, USED))
    packed = one.rebalance(Aim.POLICY, 10, policy="pack")
    assert went(packed) == {"one": "c", "two": "c"}
    assert packed.after > 0
    assert packed.moves[0].gain.startswith("score +0.")
    crowded = dict.fromkeys(("one", "two", "three", "four"), ("a", SMALL))
    spread = Plans(archive(FLEET, crowded)).rebalance(Aim.POLICY, 10, policy="spread")
    assert sorted(went(spread).values()) == ["b", "c"]
    with pytest.raises(InvalidRequest, match="unknown policy 'nope'"):
        one.rebalance(Aim.POLICY, 10, policy="nope")


@pytest.mark.parametrize(
    ("aim", "more", "words"),
    [
        (Aim.REQUEST, {}, "needs the request to make room for"),
        (Aim.DRAIN, {}, "needs the hosts to be emptied"),
        (Aim.WAITING, {"policy": "pack"}, "policy does not belong to rebalancing for waiting"),
        (Aim.REQUEST, {"request": SPREAD}, "leave out the spread, make it soft"),
        (Aim.DRAIN, {"request": SMALL, "hosts": ("a",)}, "request does not belong"),
    ],
)
def test_an_aim_gets_what_belongs_to_it(aim: Aim, more: dict[str, object], words: str) -> None:
    given = {"request": None, "hosts": (), "policy": "", **more}
    with pytest.raises(InvalidRequest, match=words):
        check_aim(aim, **given)  # type: ignore[arg-type]


@given(
    sizes=st.lists(st.integers(4, 12), min_size=2, max_size=5),
    held=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), max_size=10),
    wanted=st.tuples(st.integers(3, 12), st.integers(1, 4)),
    most=st.integers(1, 6),
)
def test_moves_are_possible_in_their_order_and_gain_what_they_say(
    sizes: list[int], held: list[tuple[int, int]], wanted: tuple[int, int], most: int
) -> None:
    """Played by themselves on another copy: each claim fits where it goes, and then the request does."""
    fleet, claims = _filled(sizes, held)
    one = archive(fleet, claims)
    request = Request({"VCPU": wanted[0]}, count=wanted[1])
    found = RebalanceQuestion(Aim.REQUEST, most, request)(copy(one))
    assert len(found.moves) <= most
    assert len({move.claim_id for move in found.moves}) == len(found.moves)
    again = copy(one)
    for move in found.moves:
        here = again.claims[move.claim_id]
        assert here.host == move.source
        again.move(here, Relocation(again).place_of(here, frozenset((move.target,))))
    if found.after:
        assert len(again.decide(replace(request, count=int(found.after))).places) == found.after
    assert found.after >= found.before


def _filled(sizes: list[int], held: list[tuple[int, int]]) -> tuple[list[HostReport], dict[str, tuple[str, Request]]]:
    free = dict(enumerate(sizes))
    claims = {}
    for number, (size, wanted) in enumerate(held):
        where = wanted % len(sizes)
        if size <= free[where]:
            free[where] -= size
            claims[f"c{number}"] = (f"h{where}", Request({"VCPU": size}))
    return [host(f"h{number}", VCPU=size) for number, size in enumerate(sizes)], claims


def test_a_plan_that_no_longer_holds_is_refused() -> None:
    """A claim has left, has another token, or its target is full by now; or less is gained."""
    one = archive(FLEET, USED)
    question = RebalanceQuestion(Aim.REQUEST, 10, LARGE)
    plan = question(copy(one))
    assert VerifyQuestion(question, plan)(copy(one)) == plan
    [move] = plan.moves
    elsewhere = archive(FLEET, {**USED, move.claim_id: ("b" if move.source != "b" else "c", SMALL)})
    full = archive(FLEET, {**USED, "more": (move.target, Request({"VCPU": 8 - 2 * 2 + 1}))})
    taken = archive(FLEET, {**USED, "late": (move.source, SMALL)})
    for other, words in ((elsewhere, "is not on"), (full, "has no place on"), (taken, "would reach 0 instead of 1")):
        with pytest.raises(ClaimState, match=words):
            VerifyQuestion(question, plan)(copy(other))
    stale = replace(plan, moves=(replace(move, token="1-a.99"),))
    with pytest.raises(ClaimState, match="is not on"):
        VerifyQuestion(question, stale)(copy(one))
