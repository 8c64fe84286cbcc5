"""The texts that claims keep of decisions: they agree with the explanation of the same request on the same columns."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from redsched.allowance import Allowance
from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.note_text import MAX_CHOSEN, MAX_REASONS, OTHER
from redsched.model import Group, Request
from redsched.settings import Settings
from redsched.store.codec.replies import HostUsage

pytestmark = pytest.mark.heavy

EPOCH = "1-a"
SHAPES = (
    Request({"VCPU": 2}),
    Request({"VCPU": 5}, required=frozenset({"CUSTOM_A"})),
    Request({"VCPU": 1}, policy="nova"),
    Request({"VCPU": 1}, groups=(Group("a", {"CUSTOM_GPU": 1}),)),
)


def host(claimed: int = 0, trait: bool = True, status: str = "enabled", gpus: int = 1) -> dict[str, str]:
    fields = {"version": "1", "epoch": EPOCH, "status": status, "alive": "1", "zone": "az1", "pool.gpu0": "/"}
    fields |= {"capacity.VCPU": "8", "claimed.VCPU": str(claimed), "capacity.gpu0/CUSTOM_GPU": str(gpus)}
    return fields | ({"trait.CUSTOM_A": "1"} if trait else {})


HOSTS = st.builds(host, st.integers(0, 8), st.booleans(), st.sampled_from(("enabled", "disabled")), st.integers(0, 1))
CHANGES = st.lists(st.tuples(st.integers(0, 30), HOSTS), max_size=25)


def fleet(hosts: int, name: str = "h%03d") -> Columns:
    columns = Columns(hosts)
    columns.set_epoch(EPOCH)
    for number in range(hosts):
        columns.put(name % number, host(number % 8, trait=bool(number % 3)))
    return columns


def keeper(columns: Columns, pick_from: int = 4) -> Decider:
    """Return a decider that keeps every decision."""
    return Decider(columns, Settings(pick_from=pick_from), keeping=Allowance(1.0, clock=lambda: 0.0))


def kept(decider: Decider, request: Request, seed: int = 0) -> list[tuple[Any, list[str]]]:
    """Return the text of each place that a decision proposes, parsed, and the place's hosts in order."""
    places = decider.decide(request, Random(seed)).places
    return [(json.loads(one.note), list(dict.fromkeys(two.host for two in one.candidates))) for one in places]


@given(st.lists(st.tuples(CHANGES, st.sampled_from(SHAPES), st.integers(0, 9)), min_size=1, max_size=8))
def test_texts_agree_with_explanations_whatever_has_changed(steps: list[Any]) -> None:
    """The counts and scores are kept between decisions, and updated for what has changed, by rows or as a whole."""
    columns = fleet(20)
    decider = keeper(columns)
    for changes, request, seed in steps:
        for number, fields in changes:
            columns.put(f"h{number:03}", fields)
        for text, hosts in kept(decider, request, seed):
            found = Decider(columns, Settings()).explain(request)
            assert text["hosts"] == len(columns)
            assert text["left_out"] == {one.reason: one.hosts for one in found.reasons}
            assert [one[0] for one in text["ranked"]] == hosts[:3]
            scores = {one.host: one for one in found.ranked}
            for name, score, *parts in text["ranked"]:
                if name in scores:  # it has the five best hosts
                    assert score == pytest.approx(scores[name].score, rel=1e-5)
                    named = dict(zip(text["weighers"], parts, strict=True))
                    expected = {**dict.fromkeys(named, 0.0), **scores[name].weighers}
                    assert named == pytest.approx(expected, rel=1e-5)


def test_a_claim_of_the_scheduler_itself_changes_the_next_text() -> None:
    columns = fleet(3)
    decider, request = keeper(columns, pick_from=1), Request({"VCPU": 8})
    [(before, [chosen])] = kept(decider, request)
    assert before["left_out"] == {"VCPU": 2}
    columns.put("h003", host())
    assert columns.from_reply(HostUsage(chosen, 2, "", {"VCPU": 8}, 1, 1), EPOCH)
    [(after, [other])] = kept(decider, request)
    assert (other, after["hosts"], after["left_out"]) == ("h003", 4, {"VCPU": 3})


def test_places_of_one_shape_share_a_text_with_the_host_of_each() -> None:
    columns = fleet(20)
    found = kept(keeper(columns), Request({"VCPU": 1}, count=30))
    [text] = {json.dumps(text) for text, _ in found}
    ranked = [one[0] for one in json.loads(text)["ranked"]]
    chosen = list(dict.fromkeys(hosts[0] for _, hosts in found))
    assert ranked[: len(chosen)] == chosen
    assert len(ranked) == len(set(ranked)) <= len(chosen) + 2


def test_without_an_allowance_nothing_is_kept() -> None:
    """Plans decide without one."""
    decider = Decider(fleet(5), Settings())
    for count in (1, 3):
        assert {one.note for one in decider.decide(Request({"VCPU": 1}, count=count), Random(0)).places} == {""}


def test_texts_are_short_at_10_000_hosts_with_long_names_and_many_reasons() -> None:
    columns = fleet(10_000, name="%063d")
    required = frozenset(f"CUSTOM_{'X' * 40}_{number}" for number in range(20))
    columns.put("a" * 63, host() | {f"trait.{one}": "1" for one in required})
    for number, missing in enumerate(sorted(required)):
        fields = host() | {f"trait.{one}": "1" for one in required - {missing}}
        columns.put(f"{number:063}", fields)
    decider = keeper(columns)
    [place] = decider.decide(Request({"VCPU": 1}, required=required, policy="nova"), Random(0)).places
    text = json.loads(place.note)
    assert len(place.note) < 700
    assert sum(text["left_out"].values()) == text["hosts"] - 1
    assert len(json.dumps(text["left_out"])) < MAX_REASONS + 100
    assert OTHER in text["left_out"]
    places = decider.decide(Request({"VCPU": 1}, count=200), Random(0)).places
    assert len(places[0].note) < 200 + (MAX_CHOSEN + 2) * 100


@pytest.mark.parametrize("changed", [1, 6, 20], ids=["one by one", "rows together", "all rows"])
def test_scores_are_those_of_the_moment(changed: int) -> None:
    """Whatever way the changed rows are evaluated in: 6 of 640 rows together, 20 of them as all rows."""
    columns = fleet(640)
    for number in range(640):
        columns.put(f"h{number:03}", host(number % 4))
    decider, request = keeper(columns, pick_from=1), Request({"VCPU": 1}, policy="pack")
    kept(decider, request)
    for claimed in (5, 7, 6, 4):
        for number in range(changed):
            columns.put(f"h{number:03}", host(claimed))  # now they are the fullest
        [(text, _)] = kept(decider, request)
        best = Decider(columns, Settings()).explain(request).ranked
        scores = [[one.host, pytest.approx(one.score, rel=1e-5)] for one in best[:3]]
        assert [one[:2] for one in text["ranked"]] == scores
