"""Group members that are ignored while a claim of a written-off host is placed again, and counted afterwards."""

from random import Random

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.lost_members import followers_on, ignoring_lost_members, written_off_with
from redsched.model import Claim, ClaimStatus, Request, Spread
from redsched.settings import Settings
from tests.support.builders.columns import FIELDS, columns_of

HOST = FIELDS | {"min.VCPU": "", "max.VCPU": "", "step.VCPU": ""}
ASKED = Request({"VCPU": 4}, server_group="g")


def fleet(policy: str, by: str, lost: str, **counts: int) -> Columns:
    """Return h1 and h2 in az1, h3 and h4 in az2, with these numbers of members of group g; some are written off."""
    hosts = {f"h{n}": HOST | {"zone": f"az{(n + 1) // 2}"} for n in range(1, 5)}
    columns = columns_of(**hosts)
    for name in lost.split():
        columns.patch(name, {"epoch": "lost", "alive": "0", "status": "disabled"})
    fields = {"version": "1", "policy": policy, "by": by, "max_per_host": "1", "members": str(sum(counts.values()))}
    fields |= {f"count.host={name}": str(count) for name, count in counts.items()}
    for zone, names in (("az1", ("h1", "h2")), ("az2", ("h3", "h4"))):
        fields[f"count.zone={zone}"] = str(sum(counts.get(name, 0) for name in names))
    columns.declared.put("server-group", "g", fields)
    return columns


def claim_on(host: str = "h1", group: str = "g") -> Claim:
    zone = "az1" if host in ("h1", "h2") else "az2"
    return Claim("a", "c1", host, ClaimStatus.ACTIVE, "1-a.1", {"VCPU": 4}, server_group=group, counted={"zone": zone})


def open_to(columns: Columns, request: Request = ASKED) -> set[str]:
    decision = Decider(columns, Settings()).decide(request, Random(0))
    return {one.host for place in decision.places for one in place.candidates}


def leaving(columns: Columns, claim: Claim, request: Request = ASKED) -> set[str]:
    with ignoring_lost_members(columns, claim):
        return open_to(columns, request)


@pytest.mark.parametrize(
    ("lost", "counts", "first", "free"),
    [
        ("h1", {"h1": 2}, ("h1",), {"h2", "h3", "h4"}),
        ("h1", {"h1": 1}, (), {"h2", "h3", "h4"}),
        ("h1", {"h1": 2, "h3": 1}, (), {"h3"}),
        ("h1 h3", {"h1": 2, "h3": 1}, ("h1", "h3"), {"h2", "h4"}),
        ("h1", {"h1": 2, "h3": 1, "h4": 1}, (), set()),
        ("h3", {"h1": 2}, (), set()),
    ],
)
def test_under_affinity_members_on_dead_hosts_hold_nobody_who_leaves_one(
    lost: str, counts: dict[str, int], first: tuple[str, ...], free: set[str]
) -> None:
    """The first claim may go to any host, and later ones follow it. In the last case the claim leaves a live host."""
    columns = fleet("affinity", "host", lost, **counts)
    assert followers_on(columns, claim_on()) == first
    assert leaving(columns, claim_on()) - {"h1"} == free
    named = written_off_with(columns, claim_on())
    assert named == (tuple(host for host in lost.split() if host in counts) if "h1" in lost else ())


def test_who_is_new_is_held_by_members_on_dead_hosts() -> None:
    columns = fleet("affinity", "host", "h1", h1=2)
    assert open_to(columns) == set()
    assert leaving(columns, claim_on(group="")) == set()


def test_under_anti_affinity_only_the_claim_itself_is_left_behind() -> None:
    """Other members on dead hosts still count, because they may return with their host."""
    columns = fleet("anti-affinity", "zone", "h1 h3", h1=1, h3=1)
    assert open_to(columns) == set()
    assert leaving(columns, claim_on()) == {"h2"}
    assert leaving(columns, claim_on("h3")) == {"h4"}
    assert (written_off_with(columns, claim_on()), followers_on(columns, claim_on())) == ((), ())


def test_spreading_is_over_what_will_be_when_the_claim_is_gone() -> None:
    columns = fleet("soft-affinity", "host", "h1", h1=2, h3=2)
    request = Request({"VCPU": 4}, server_group="g", spread=(Spread("zone"),))
    assert (open_to(columns, request), leaving(columns, claim_on(), request)) == ({"h2", "h3", "h4"}, {"h2"})


def test_what_was_left_out_is_counted_again() -> None:
    """The counts are restored even if deciding raises an error; unreadable counts are left as they are."""
    columns = fleet("affinity", "zone", "h1", h1=2)
    columns.declared.patch("server-group", "g", {"count.host=h2": "x"})
    before = columns.declared.describe()

    def fail() -> None:
        with ignoring_lost_members(columns, claim_on()):
            assert columns.declared.groups["g"].members == 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert columns.declared.describe() == before
    columns.declared.patch("server-group", "g", {"count.host=h1": "x"})
    assert leaving(columns, claim_on()) == {"h2"}


def test_a_group_that_nobody_has_declared_leaves_nothing() -> None:
    columns = fleet("affinity", "host", "h1", h1=2)
    assert written_off_with(columns, claim_on(group="other")) == ()
    assert leaving(columns, claim_on(group="other")) == set()


def test_the_explanation_counts_what_holds() -> None:
    """The explanation of a host names only members on live hosts."""
    columns = fleet("affinity", "host", "h1", h1=2, h3=1)
    with ignoring_lost_members(columns, claim_on()):
        told = Decider(columns, Settings()).explain(ASKED, "h2")
    assert [one.detail for one in told.checks[0].checks if not one.ok] == [
        "the members of group g are in host h3, this is h2"
    ]
