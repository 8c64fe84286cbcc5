"""Scores: the sum of weighers, the normalization of relative ones, and multipliers of aggregates."""

import numpy as np
import pytest

from redsched.cache.columns import Columns
from redsched.decide.scoring import Weigher, score, weighers
from redsched.decide.scoring.weigher import normalized
from redsched.model import Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import aggregate, weigher

REQUEST = Request({"VCPU": 2, "MEMORY_MB": 100})


def halves() -> Columns:
    return columns_of(
        h1={"capacity.VCPU": "8", "claimed.VCPU": "2", "capacity.MEMORY_MB": "400"},
        h2={"capacity.VCPU": "2", "capacity.MEMORY_MB": "100"},
    )


def test_a_row_alone_scores_as_among_others() -> None:
    columns = halves()
    weighing = {weigher("spread"): 0.3, weigher("balance"): 0.1}
    together = score(columns, REQUEST, weighing, np.array([0, 1]))
    assert [score(columns, REQUEST, weighing, row) for row in (0, 1)] == together.tolist()
    assert together[0] == pytest.approx(0.3 * 0.625 + 0.1 * 0.75)


def test_nothing_to_weigh_by_is_a_score_of_nothing() -> None:
    assert score(halves(), REQUEST, {}, 0) == 0.0
    assert score(halves(), REQUEST, {weigher("spread"): 0.0}, 0) == 0.0


def test_a_relative_weigher_is_stretched_over_the_rows_before_it_is_multiplied() -> None:
    columns = halves()
    assert score(columns, REQUEST, {weigher("cpu"): 3.0}, np.array([0, 1])).tolist() == [3.0, 1.0]
    assert score(columns, REQUEST, {weigher("num_instances"): 3.0}, np.array([0, 1])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("values", "ends", "expected"),
    [
        ([1.0, 3.0, 2.0], (None, None), [0.0, 1.0, 0.5]),
        ([2.0, 2.0], (None, None), [0.0, 0.0]),
        ([], (None, None), []),
        ([5.0, 10.0], (0.0, None), [0.5, 1.0]),
        ([-5.0, 10.0], (0.0, None), [0.0, 1.0]),
        ([-5.0, -1.0], (0.0, None), [0.0, 0.0]),
        ([-4.0, 0.0, 9.0], (None, 0.0), [0.0, 1.0, 1.0]),
        ([-4.0, 1.0, 9.0], (0.0, 2.0), [0.0, 0.5, 1.0]),
        ([np.nan, 1.0, 3.0], (None, None), [0.0, 0.0, 1.0]),
        ([np.inf, 1.0, 3.0, -np.inf], (None, None), [1.0, 0.0, 1.0, 0.0]),
        ([np.nan, np.nan], (None, None), [0.0, 0.0]),
    ],
)
def test_values_are_stretched_between_the_lowest_and_the_highest(
    values: list[float], ends: tuple[float | None, float | None], expected: list[float]
) -> None:
    assert normalized(np.array(values), *ends).tolist() == expected


# Multipliers of aggregates


def hosts_in(**aggregates: str) -> Columns:
    """Return hosts, each in the listed aggregates."""
    names = {host: text.split() for host, text in aggregates.items()}
    return columns_of(**{host: {f"aggregate.{name}": "1" for name in found} for host, found in names.items()})


def multiplied(columns: Columns, name: str = "ram") -> list[float]:
    one, rows = weigher(name), np.arange(len(columns))
    together: list[float] = np.broadcast_to(one.multiplied(columns, rows, 2.0), len(rows)).tolist()
    assert together == [float(one.multiplied(columns, row, 2.0)) for row in rows.tolist()]
    return together


def test_an_aggregate_has_a_multiplier_for_its_hosts_and_the_lowest_of_several_holds() -> None:
    columns = hosts_in(h1="fast", h2="fast slow", h3="", h4="slow")
    aggregate(columns, "fast", {"ram_weight_multiplier": "5"})
    aggregate(columns, "slow", {"ram_weight_multiplier": "-1.5", "cpu_weight_multiplier": "9"})
    assert multiplied(columns) == [5.0, -1.5, 2.0, -1.5]
    assert multiplied(columns, "disk") == [2.0] * 4


def test_a_multiplier_that_is_no_number_is_none() -> None:
    columns = hosts_in(h1="fast", h2="odd")
    aggregate(columns, "fast", {"ram_weight_multiplier": "much"})
    aggregate(columns, "odd", {"ram_weight_multiplier": "inf"})
    assert multiplied(columns) == [2.0, 2.0]


def test_one_unreadable_multiplier_leaves_a_host_without_those_of_all_its_aggregates() -> None:
    columns = hosts_in(h1="fast odd", h2="odd", h3="fast")
    aggregate(columns, "fast", {"ram_weight_multiplier": "5"})
    aggregate(columns, "odd", {"ram_weight_multiplier": "much"})
    assert multiplied(columns) == [2.0, 2.0, 5.0]


def test_the_sign_of_build_failure_holds_for_an_aggregates_multiplier_too() -> None:
    columns = hosts_in(h1="fast", h2="")
    aggregate(columns, "fast", {"build_failure_weight_multiplier": "5"})
    assert multiplied(columns, "build_failure") == [-5.0, -2.0]


def test_a_score_uses_them_and_wakes_a_weigher_whose_multiplier_is_nothing() -> None:
    columns = columns_of(
        h1={"claims": "4", "aggregate.few": "1"}, h2={"claims": "2"}, h3={"claims": "0", "aggregate.few": "1"}
    )
    weighing = {weigher("num_instances"): 0.0}
    assert score(columns, REQUEST, weighing, np.arange(3)) == 0.0
    aggregate(columns, "few", {"num_instances_weight_multiplier": "-1"})
    assert score(columns, REQUEST, weighing, np.arange(3)).tolist() == [-1.0, 0.0, 0.0]


def test_an_aggregate_does_not_wake_image_props() -> None:
    columns = columns_of(h1={"label.os": "linux", "aggregate.few": "1"}, h2={"label.os": "bsd", "aggregate.few": "1"})
    aggregate(columns, "few", {"image_props_weight_multiplier": "3"})
    request = Request({"VCPU": 1}, properties={"os": "linux"})
    assert score(columns, request, {weigher("image_props"): 0.0}, np.arange(2)) == 0.0
    assert score(columns, request, {weigher("image_props"): 1.0}, np.arange(2)).tolist() == [3.0, 0.0]


def test_what_a_weigher_depends_on_changes_with_a_multiplier_and_with_nothing_else() -> None:
    columns, one, other = hosts_in(h1="fast"), weigher("spread"), weigher("pack")
    before, other_before = one.depends(columns), other.depends(columns)
    aggregate(columns, "fast", {"ssd": "true"})
    assert one.depends(columns) == before
    aggregate(columns, "fast", {"spread_weight_multiplier": "2"})
    assert one.depends(columns) != before
    assert other.depends(columns) == other_before
    columns.declared.remove("aggregate", "fast")
    assert one.depends(columns) == before


def test_what_ones_own_weigher_depends_on_is_still_asked() -> None:
    own = Weigher("mine", lambda columns, request, rows: 0.0, depends=lambda columns: columns.size)
    small, large = Columns(2), Columns(4)
    found = weighers(Settings(), (own,))["mine"]
    assert found.depends(small) != found.depends(large)
