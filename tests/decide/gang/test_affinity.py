"""Server groups: the hosts that a new member may use depend on where the existing members are."""

from random import Random

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.model import Request
from redsched.settings import Settings
from tests.support.builders.columns import FIELDS, columns_of

ASKED = Request({"VCPU": 4}, server_group="g")


def fleet(policy: str, **counts: int) -> Columns:
    """Return hosts h1 to h3, and a group with this many members on each."""
    host = FIELDS | {"min.VCPU": "", "max.VCPU": "", "step.VCPU": ""}
    columns = columns_of(h1=host, h2=host, h3=host)
    held = {f"count.host={name}": str(count) for name, count in counts.items()}
    fields = {"version": "1", "policy": policy, "by": "host", "max_per_host": "1", "members": str(sum(counts.values()))}
    columns.declared.put("server-group", "g", fields | held)
    return columns


@pytest.mark.parametrize(
    ("policy", "counts", "open_to"),
    [
        ("affinity", {}, {"h1", "h2", "h3"}),
        ("affinity", {"h2": 3}, {"h2"}),
        ("affinity", {"h1": 1, "h2": 1}, set()),
        ("anti-affinity", {"h2": 1}, {"h1", "h3"}),
        ("soft-affinity", {"h1": 1, "h2": 1}, {"h1", "h2", "h3"}),
    ],
)
def test_who_may_join(policy: str, counts: dict[str, int], open_to: set[str]) -> None:
    """If members of an affinity group are on different hosts (as after hosts restored claims), no host is open."""
    decision = Decider(fleet(policy, **counts), Settings()).decide(ASKED, Random(0))
    assert {one.host for place in decision.places for one in place.candidates} == open_to
    if not open_to:
        assert [(one.reason, one.hosts) for one in decision.reasons] == [("server_group", 3)]


def test_a_soft_group_draws_where_its_members_are() -> None:
    decision = Decider(fleet("soft-affinity", h3=2), Settings()).decide(ASKED, Random(0))
    assert decision.places[0].chosen.host == "h3"
    decision = Decider(fleet("soft-anti-affinity", h1=2, h2=1), Settings()).decide(ASKED, Random(0))
    assert decision.places[0].chosen.host == "h3"
