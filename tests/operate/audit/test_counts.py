"""The audit compares groups and pools with the claims that name them, unless they changed during the audit."""

from redsched.model.validation import MAX_AMOUNT
from redsched.operate.audit.counts import Counted, count_problems

CLAIM = {"host": "h1", "state": "active", "group": "web", "counted.zone": "az1", "amount.pool:lic/CUSTOM_SEAT": "3"}
GROUP = {"version": "4", "policy": "affinity", "members": "1", "count.host=h1": "1", "count.zone=az1": "1"}
POOL = {"version": "9", "capacity.CUSTOM_SEAT": "5", "claimed.CUSTOM_SEAT": "3"}
THINGS = {"server-group:web": GROUP, "pool:lic": POOL}


async def test_what_agrees_is_no_problem() -> None:
    assert await count_problems("c1", THINGS, THINGS, Counted([CLAIM])) == []


async def test_what_changed_while_claims_were_read_is_not_judged() -> None:
    """A claim may join after its host was read; the changed version of the group shows that."""
    later = {"server-group:web": GROUP | {"version": "5", "members": "2"}, "pool:lic": POOL | {"version": "10"}}
    assert await count_problems("c1", THINGS, later, Counted()) == []
    assert await count_problems("c1", {}, later, Counted()) == []
    unmoved = {"server-group:web": later["server-group:web"], "pool:lic": POOL}
    found = await count_problems("c1", THINGS, unmoved, Counted())
    assert [one.thing for one in found] == ["pool:lic claimed.CUSTOM_SEAT"]


async def test_an_undeclared_pool_has_no_capacity_to_break() -> None:
    left = {"pool:lic": {"version": "9", "claimed.CUSTOM_SEAT": "3"}}
    assert await count_problems("c1", left, left, Counted([CLAIM | {"group": ""}])) == []


async def test_a_sum_that_cannot_be_kept_is_a_problem_that_no_repair_is_tried_on() -> None:
    """Repairs could only cut it, and find it again."""
    claims = [{"host": "h1", "state": "active", "project": "web", "amount.VCPU": str(5 * 10**15)}] * 2
    quota = {"quota:web": {"seq": "7", "used.VCPU": str(MAX_AMOUNT), "used.claims": "2"}}
    [found] = await count_problems("c1", quota, quota, Counted(claims))
    assert (found.should, found.repair) == (str(10**16), None)
    assert "release claims" in found.advice
