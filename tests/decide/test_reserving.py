"""Which host a request that fits nowhere should wait for, and what has to happen there."""

from collections.abc import Mapping

import pytest

from redsched.cache.columns import Columns
from redsched.cache.diff import difference
from redsched.decide.decider import Decider
from redsched.decide.reserving import MAX_CLAIMS
from redsched.model import Claim, ClaimStatus, Group, Placement, Request
from redsched.settings import Settings

NOW_MS = 1_000_000
WHOLE = Request({"VCPU": 8})


def fleet(*used: int, **more: str) -> Columns:
    """Return hosts h0, h1, ... of which this much VCPU is claimed."""
    columns = Columns()
    columns.set_epoch("1-a")
    for number, claimed in enumerate(used):
        usual = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1", "claims": str(claimed)}
        columns.put(f"h{number}", usual | {"capacity.VCPU": "8", "claimed.VCPU": str(claimed)} | more)
    return columns


def claim(name: str, amounts: Mapping[str, int], deadline_ms: int | None = None, host: str = "h0") -> Claim:
    placement = Placement("1-a.1", "1-a.1", "1-a.1", host, ClaimStatus.ACTIVE, amounts)
    return Claim(
        name, "c1", host, ClaimStatus.ACTIVE, "1-a.1", amounts, placements=(placement,), runtime_deadline_ms=deadline_ms
    )


def waits(decider: Decider, request: Request, *claims: Claim) -> tuple[tuple[str, ...], int, int] | None:
    found = decider.wait_for(request, "h0", claims, NOW_MS)
    return None if found is None else (found.leaving, found.unlimited, found.from_ms - NOW_MS)


def decider_of(columns: Columns) -> Decider:
    return Decider(columns, Settings())


def test_as_few_claims_as_possible_have_to_leave() -> None:
    claims = [claim("small", {"VCPU": 1}), claim("large", {"VCPU": 4}), claim("other", {"VCPU": 2})]
    decider = decider_of(fleet(7))
    assert waits(decider, Request({"VCPU": 3}), *claims) == (("large",), 1, 0)
    assert waits(decider, WHOLE, *claims) == (("small", "other", "large"), 3, 0)


def test_rather_those_that_end_soon() -> None:
    claims = [
        claim("for-ever", {"VCPU": 1}),
        claim("late", {"VCPU": 3}, NOW_MS + 9000),
        claim("soon", {"VCPU": 3}, NOW_MS + 2000),
    ]
    decider = decider_of(fleet(7))
    assert waits(decider, Request({"VCPU": 4}), *claims) == (("soon",), 0, 2000)
    assert waits(decider, Request({"VCPU": 7}), *claims) == (("late", "soon"), 0, 9000)
    assert waits(decider, WHOLE, *claims) == (("for-ever", "late", "soon"), 1, 9000)


def test_a_host_that_is_too_small_even_without_claims() -> None:
    assert waits(decider_of(fleet(7)), Request({"VCPU": 9}), claim("a", {"VCPU": 7})) is None


def test_external_usage_does_not_leave() -> None:
    assert waits(decider_of(fleet(7, **{"external.VCPU": "1"})), WHOLE, claim("a", {"VCPU": 7})) is None


def test_hosts_that_are_gone_or_have_too_many_claims() -> None:
    decider = decider_of(fleet(7))
    assert decider.wait_for(WHOLE, "h9", [], NOW_MS) is None
    assert waits(decider, WHOLE, *[claim(f"c{number}", {"VCPU": 0}) for number in range(MAX_CLAIMS + 1)]) is None


def test_gpus_are_kept_as_they_will_be_assigned() -> None:
    gpus = {f"capacity.gpu{number}/CUSTOM_GPU_MILLI": "1000" for number in range(2)}
    pools = {f"pool.gpu{number}": "/" for number in range(2)}
    taken = {"claimed.gpu0/CUSTOM_GPU_MILLI": "400"}
    decider = decider_of(fleet(0, **gpus, **pools, **taken))
    both = Request(
        groups=(Group("a", {"CUSTOM_GPU_MILLI": 1000}), Group("b", {"CUSTOM_GPU_MILLI": 1000})), group_policy="isolate"
    )
    found = decider.wait_for(both, "h0", [claim("part", {"gpu0/CUSTOM_GPU_MILLI": 400})], NOW_MS)
    assert found is not None
    assert (found.leaving, dict(found.amounts)) == (
        ("part",),
        {"gpu0/CUSTOM_GPU_MILLI": 1000, "gpu1/CUSTOM_GPU_MILLI": 1000},
    )


def test_the_columns_stay_as_they_are() -> None:
    columns, as_before = fleet(7, 3), fleet(7, 3)
    decider = decider_of(columns)
    assert decider.worth_waiting_for(WHOLE, 9) == ["h1", "h0"]
    waits(decider, WHOLE, claim("a", {"VCPU": 4}), claim("b", {"VCPU": 3}))
    assert difference(columns, as_before) == []


def test_hosts_with_most_room_first_and_none_that_never_fits() -> None:
    columns = fleet(7, 3, 5, 8)
    columns.patch("h2", {"status": "disabled"})
    columns.patch("h3", {"capacity.VCPU": "7"})
    assert decider_of(columns).worth_waiting_for(WHOLE, 9) == ["h1", "h0"]
    assert decider_of(columns).worth_waiting_for(WHOLE, 1) == ["h1"]


@pytest.mark.parametrize(("own", "expected"), [("", ["h0"]), ("r1", ["h1", "h0"])])
def test_hosts_that_are_reserved_for_another_request_are_left_out(own: str, expected: list[str]) -> None:
    columns = fleet(7, 3)
    columns.patch("h1", {"reservation": "r1", "kept.VCPU": "4"})
    assert decider_of(columns).worth_waiting_for(WHOLE, 9, own) == expected


def test_its_own_reservation_does_not_stand_in_the_way() -> None:
    columns = fleet(7)
    columns.patch("h0", {"reservation": "r1", "kept.VCPU": "8"})
    assert waits(decider_of(columns), WHOLE, claim("a", {"VCPU": 7})) == (("a",), 1, 0)
