"""Decisions: candidates, alternates, members and refusals, and the cache of request profiles."""

from random import Random

import pytest

from redsched.cache.columns import Columns
from redsched.cache.diff import difference
from redsched.decide.decider import Decider
from redsched.decide.profile import RequestProfile
from redsched.errors import InvalidRequest
from redsched.model import ReasonCount, Request
from redsched.model.records.explanations import Miss
from redsched.settings import Settings
from redsched.store.codec.replies import HostUsage
from tests.support.builders.decisions import hosts_of

DEFAULTS = Settings()


def fleet(*capacities: int, **more: str) -> Columns:
    """Return hosts h0, h1, ... with this much VCPU."""
    columns = Columns()
    columns.set_epoch("1-a")
    for number, capacity in enumerate(capacities):
        usual = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1"}
        columns.put(f"h{number}", usual | {"capacity.VCPU": str(capacity)} | more)
    return columns


def firsts(decider: Decider, request: Request, seed: int = 0) -> list[str]:
    return [place.chosen.host for place in decider.decide(request, Random(seed)).places]


def test_candidates_are_the_best_then_alternates_without_the_first() -> None:
    decision = Decider(fleet(10, 40, 30, 20, 5), Settings(pick_from=1, candidates=2)).decide(
        Request({"VCPU": 4}, alternates=1), Random(0)
    )
    assert hosts_of(decision) == [("h1", "h2")]
    assert decision.alternates == ("h2", "h3")
    assert (decision.score, decision.hosts, decision.fits, decision.reasons) == (36 / 40, 5, 5, ())


def test_no_alternates_unless_asked_for() -> None:
    assert Decider(fleet(9, 9), DEFAULTS).decide(Request({"VCPU": 4}), Random(0)).alternates == ()


def test_pack_prefers_the_fullest_and_spread_the_emptiest() -> None:
    decider = Decider(fleet(10, 40, 5), DEFAULTS)
    assert firsts(decider, Request({"VCPU": 4}, policy="pack")) == ["h2"]
    assert firsts(decider, Request({"VCPU": 4}, policy="spread")) == ["h1"]
    assert firsts(decider, Request({"VCPU": 4}, weights={"spread": -1})) == ["h2"]


def test_equal_hosts_go_by_name() -> None:
    decider = Decider(fleet(*[8] * 12), Settings(pick_from=1))
    assert hosts_of(decider.decide(Request({"VCPU": 4}), Random(0)))[0][:4] == ("h0", "h1", "h10", "h11")


def test_schedulers_aim_at_different_ones_of_the_best_few() -> None:
    decider = Decider(fleet(*[8] * 12), Settings(pick_from=4))
    chosen = {firsts(decider, Request({"VCPU": 4}), seed)[0] for seed in range(100)}
    assert chosen == {"h0", "h1", "h10", "h11"}


def test_members_do_not_aim_at_room_promised_to_earlier_ones() -> None:
    decider = Decider(fleet(8, 4, 3), DEFAULTS)
    request = Request({"VCPU": 4}, count=3)
    assert sorted(firsts(decider, request)) == ["h0", "h0", "h1"]
    assert firsts(decider, request, 1) == firsts(decider, request, 2)


def test_several_are_placed_whole_or_not_at_all() -> None:
    decider = Decider(fleet(8, 4, 3), DEFAULTS)
    decision = decider.decide(Request({"VCPU": 4}, count=4), Random(0))
    assert (decision.places, decision.alternates, decision.fits) == ((), (), 0)
    assert decision.reasons == (ReasonCount("VCPU", 1), ReasonCount("count", 2))
    explanation = decider.explain(Request({"VCPU": 4}, count=4), "h0")
    assert explanation.reasons == decision.reasons
    assert explanation.checks[0].reason == "count"
    assert explanation.checks[0].checks[-1].detail == "needs 4 places, the hosts that fit have room for 3"


def test_trying_members_out_leaves_the_columns_as_they_were() -> None:
    columns = fleet(8, 4)
    Decider(columns, DEFAULTS).decide(Request({"VCPU": 4}, count=3), Random(0))
    assert difference(columns, fleet(8, 4)) == []


def test_several_spread_over_equal_hosts_and_pack_onto_one() -> None:
    decider = Decider(fleet(8, 8, 8), DEFAULTS)
    assert sorted(firsts(decider, Request({"VCPU": 2}, count=3))) == ["h0", "h1", "h2"]
    assert firsts(decider, Request({"VCPU": 2}, count=3, policy="pack")) in ([f"h{one}"] * 3 for one in range(3))


def test_a_refusal_has_the_counts_and_an_explanation_the_nearest() -> None:
    decider = Decider(fleet(1, 3, 2), DEFAULTS)
    decision = decider.decide(Request({"VCPU": 4}), Random(0))
    assert (decision.places, decision.reasons) == ((), (ReasonCount("VCPU", 3),))
    nearest = decider.explain(Request({"VCPU": 4})).nearest
    left = (("h1", 3), ("h2", 2), ("h0", 1))
    assert nearest == tuple(Miss(host, {"VCPU": 4}, {"VCPU": n}, (f"{4 - n} VCPU less",)) for host, n in left)


def test_a_host_whose_units_forbid_all_that_it_has_is_not_near() -> None:
    """A host whose total is too small is: a request for more than any host has gets the largest available amount."""
    for units in ({"min.VCPU": "5"}, {"step.VCPU": "5"}):
        assert Decider(fleet(3, **units), DEFAULTS).explain(Request({"VCPU": 4})).nearest == ()
    (stepped,) = Decider(fleet(3, **{"step.VCPU": "3"}), DEFAULTS).explain(Request({"VCPU": 4})).nearest
    assert stepped.changes == ("3 VCPU instead of 4 (step_size 3)",)
    too_small = Decider(fleet(3, **{"max.VCPU": "2"}), DEFAULTS).explain(Request({"VCPU": 4})).nearest
    assert too_small[0] == Miss("h0", {"VCPU": 4}, {"VCPU": 3}, ("2 VCPU less (max_unit 2)",))


def test_only_what_lacks_is_named_as_missing() -> None:
    columns = fleet(3, **{"capacity.MEMORY_MB": "500"})
    nearest = Decider(columns, DEFAULTS).explain(Request({"VCPU": 4, "MEMORY_MB": 500})).nearest
    assert nearest == (Miss("h0", {"VCPU": 4}, {"VCPU": 3}, ("1 VCPU less",)),)


def test_no_hosts_and_unknown_hosts_are_ordinary() -> None:
    decider = Decider(Columns(), DEFAULTS)
    decision = decider.decide(Request({"VCPU": 1}, count=2), Random(0))
    assert (decision.places, decision.reasons, decision.hosts) == ((), (), 0)
    assert decider.explain(Request({"VCPU": 1}), "h1").checks == ()


def test_an_unknown_policy_is_refused_every_time() -> None:
    decider = Decider(fleet(8), DEFAULTS)
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="unknown policy 'best'"):
            decider.decide(Request({"VCPU": 1}, policy="best"), Random(0))


def test_a_claim_applied_shows_in_the_next_decision() -> None:
    columns = fleet(8, 7)
    decider = Decider(columns, DEFAULTS)
    assert firsts(decider, Request({"VCPU": 4})) == ["h0"]
    columns.from_reply(HostUsage("h0", 2, "", {"VCPU": 4}, 1, 1), "1-a")
    assert firsts(decider, Request({"VCPU": 4})) == ["h1"]


def test_a_repeated_shape_looks_only_at_changed_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = fleet(*range(8, 40))
    decider = Decider(columns, DEFAULTS)
    decider.decide(Request({"VCPU": 4}), Random(0))
    monkeypatch.setattr(RequestProfile, "_evaluate_all", lambda self: pytest.fail("looked at every row"))
    looked: list[int] = []
    monkeypatch.setattr(RequestProfile, "_evaluate", lambda self, row: looked.append(row))
    columns.patch("h3", {"claimed.VCPU": "2"})
    decider.decide(Request({"VCPU": 4}, project="web"), Random(0))
    decider.decide(Request({"VCPU": 4}), Random(0))
    assert looked == [columns.row("h3")]


@pytest.mark.parametrize("policy", ["spread", "pack"])
def test_claim_after_claim_the_cached_order_is_the_fresh_one(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cached best hosts run out several times meanwhile, and are computed again from scores of changed rows."""
    monkeypatch.setattr("redsched.decide.ranked_rows.FRONT", 2)
    columns, settings = fleet(*[20 + number % 7 for number in range(60)]), Settings(candidates=1)
    request, decider = Request({"VCPU": 3}, policy=policy), Decider(columns, settings)
    for version in range(2, 302):
        expected = firsts(Decider(columns, settings), request)
        assert firsts(decider, request) == expected
        row = columns.row(expected[0])
        assert row is not None
        columns.patch(
            expected[0], {"claimed.VCPU": str(columns.claimed["VCPU"].item(row) + 3), "version": str(version)}
        )


def test_only_the_latest_shapes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Request] = []
    decider = Decider(fleet(8), DEFAULTS, remembered=2)
    whole = RequestProfile.__init__

    def noting(self: RequestProfile, columns: Columns, request: Request, *rest: object) -> None:
        made.append(request)
        whole(self, columns, request, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(RequestProfile, "__init__", noting)
    for amount in (1, 2, 1, 3, 1, 2):
        decider.decide(Request({"VCPU": amount}), Random(0))
    assert [request.resources["VCPU"] for request in made] == [1, 2, 3, 2]


def test_a_shape_keeps_no_ids_of_the_call_that_was_first() -> None:
    """Requests of one shape but different counts are decided and explained by their own counts."""
    decider = Decider(fleet(4), DEFAULTS)
    for count in (3, 2, 1):
        asked = Request({"VCPU": 4}, count=count, claim_ids=tuple(f"i{n}" for n in range(count)))
        assert len(decider.decide(asked, Random(0)).places) == (1 if count == 1 else 0)
        assert decider.explain(asked).fits == (1 if count == 1 else 0)
