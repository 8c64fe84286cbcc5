"""The weighers' figures, and which multipliers hold."""

import numpy as np
import pytest

from redsched.cache.columns import Columns
from redsched.decide.weighers import WEIGHERS, multipliers, score
from redsched.decide.weighers.room import pack, spread
from redsched.decide.weighers.weigher import Weighing
from redsched.errors import InvalidRequest
from redsched.model import Request

REQUEST = Request({"VCPU": 2, "MEMORY_MB": 100})


def halves() -> Columns:
    columns = Columns()
    columns.put("h1", {"capacity.VCPU": "8", "claimed.VCPU": "1", "external.VCPU": "1", "capacity.MEMORY_MB": "400"})
    columns.put("h2", {"capacity.VCPU": "2", "capacity.MEMORY_MB": "100"})
    return columns


def test_spread_is_the_mean_free_fraction_after_placing_and_pack_its_opposite() -> None:
    columns = halves()
    assert spread(columns, REQUEST, np.array([0, 1])).tolist() == [(4 / 8 + 300 / 400) / 2, 0.0]
    assert pack(columns, REQUEST, np.array([0, 1])).tolist() == [1 - 0.625, 1.0]


def test_a_row_alone_scores_as_among_others() -> None:
    columns = halves()
    weighing = {WEIGHERS["spread"]: 0.3, WEIGHERS["pack"]: 0.1}
    together = score(columns, REQUEST, weighing, np.array([0, 1]))
    assert [score(columns, REQUEST, weighing, row) for row in (0, 1)] == together.tolist()


def named(weighing: Weighing) -> dict[str, float]:
    return {weigher.name: multiplier for weigher, multiplier in weighing.items()}


def test_the_request_overrules_the_settings_and_they_the_policy() -> None:
    asked = Request({"VCPU": 1}, policy="pack", weights={"spread": 0.5})
    assert named(multipliers(Request({"VCPU": 1}), "spread", {})) == {"spread": 1.0}
    assert named(multipliers(asked, "spread", {"pack": 3.0, "spread": 9.0})) == {"pack": 3.0, "spread": 0.5}
    assert named(multipliers(asked, "spread", {})) == {"pack": 1.0, "spread": 0.5}


def test_a_multiplier_of_nothing_leaves_the_weigher_out() -> None:
    assert multipliers(Request({"VCPU": 1}, weights={"spread": 0}), "spread", {}) == {}
    assert score(halves(), REQUEST, {}, 0) == 0.0


@pytest.mark.parametrize(
    ("request_", "weights", "message"),
    [
        (Request({"VCPU": 1}, policy="best"), {}, "unknown policy 'best': use one of pack, spread"),
        (Request({"VCPU": 1}, weights={"ram": 1.0}), {}, "unknown weigher 'ram' in weights: use one of pack, spread"),
        (Request({"VCPU": 1}), {"ram": 1.0}, "unknown weigher 'ram' in weights: use one of pack, spread"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(
    request_: Request, weights: dict[str, float], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        multipliers(request_, "spread", weights)
