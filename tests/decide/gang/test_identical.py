"""Identical places: found as by the general search, with the same random choices, and without changing the columns."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.gang import Kind, identical, placement
from redsched.decide.result import Decision
from redsched.model import GangMember, Request
from redsched.settings import Settings

pytestmark = pytest.mark.heavy

ENABLED = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1"}
POLICIES = ("spread", "pack")


def random_fleet(rng: Random) -> Columns:
    """Return up to 40 hosts: small and large, some full, some that allow few claims."""
    columns = Columns()
    columns.set_epoch("1-a")
    for number in range(rng.randint(1, 40)):
        vcpu, claimed = rng.choice((4, 8, 16)), rng.randint(0, 4)
        fields = {"capacity.VCPU": str(vcpu), "capacity.MEMORY_MB": str(1024 * rng.randint(1, 32))}
        if claimed:
            fields |= {"claimed.VCPU": str(claimed), "claims": str(claimed), "starting": str(rng.randint(0, claimed))}
        columns.put(f"h{number}", ENABLED | fields | {"max.VCPU": str(vcpu)})
    return columns


def random_request(rng: Random) -> Request:
    amounts = {"VCPU": rng.randint(1, 4)} | ({"MEMORY_MB": 1024 * rng.randint(1, 4)} if rng.random() < 0.5 else {})
    request = Request(amounts, count=rng.randint(2, 60), policy=rng.choice(POLICIES))
    return replace(request, mode=rng.choice(("all", "incremental")), alternates=rng.choice((0, 3)))


def state_of(columns: Columns) -> list[list[int]]:
    arrays = (columns.claimed["VCPU"], columns.claimed["MEMORY_MB"], columns.claims, columns.starting)
    return [array.tolist() for array in arrays]


def decide(columns: Columns, request: Request, seed: int, pick_from: int, limit: int) -> Decision:
    settings = Settings(pick_from=pick_from, candidates=5, max_starting_per_host=limit)
    return Decider(columns, settings).decide(request, Random(seed))


@pytest.mark.parametrize("pick_from", [1, 4])
@pytest.mark.parametrize("limit", [0, 3])
@pytest.mark.parametrize("seed", range(60))
def test_identical_places_are_found_as_by_the_general_search(
    seed: int, limit: int, pick_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    columns, request = random_fleet(rng), random_request(rng)
    before = state_of(columns)
    found = decide(columns, request, seed, pick_from, limit)
    assert state_of(columns) == before
    monkeypatch.setattr(placement, "are_identical", lambda *_: False)
    expected = decide(columns, request, seed, pick_from, limit)
    if 0 < len(expected.places) < request.count and pick_from > 1:
        # The general search has by then made random choices for the whole request, and begins anew.
        assert len(found.places) == len(expected.places)
        return
    assert found == expected
    assert len(found.places) in (0, request.count) or request.mode == "incremental"


def test_the_general_search_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gang of one kind counts as identical places too; one with two kinds does not."""
    calls: list[bool] = []
    are_identical = identical.are_identical

    def noted(call: Request, kinds: tuple[Kind, ...]) -> bool:
        calls.append(are_identical(call, kinds))
        return calls[-1]

    monkeypatch.setattr(placement, "are_identical", noted)
    one, columns = Request({"VCPU": 1}), random_fleet(Random(3))
    for request in (
        Request({"VCPU": 1}, count=2),
        Request(members=(GangMember("web", replace(one, count=2)),)),
        Request(members=(GangMember("web", one), GangMember("db", Request({"VCPU": 2})))),
    ):
        decide(columns, request, 0, 1, 0)
    assert calls == [True, True, False]


def test_a_class_that_no_host_has_claimed_yet_gets_a_column() -> None:
    columns = Columns()
    columns.set_epoch("1-a")
    for name in ("a", "b"):
        columns.put(name, ENABLED | {"capacity.CUSTOM_FPGA": "2"})
    decision = decide(columns, Request({"CUSTOM_FPGA": 1}, count=4), 0, 1, 0)
    assert [place.chosen.host for place in decision.places] == ["a", "b", "a", "b"]
    assert not np.any(columns.claimed["CUSTOM_FPGA"])
