"""The verbs on all claims that match a filter do the same on a scheduler and over REST."""

from redsched.errors import InvalidRequest, NotFound
from redsched.model.filters import ClaimFilter
from redsched.operations.claims import Bulk
from tests.contract.parts import Play, contract

WEB = ClaimFilter(project="web")


def given(play: Play) -> dict[str, int]:
    """Return the argument that only one of the verbs has."""
    return {"lease_s": 600} if play.operation is Bulk.renew else {}


@contract(Bulk.release, Bulk.renew, Bulk.shelve, Bulk.unshelve)
async def test_many_claims(play: Play) -> None:
    more = given(play)
    for name in ("a", "b", "c"):
        one = await play.placed(name, {"VCPU": 1})
        if play.operation is Bulk.unshelve:
            await play.fleet.claims.shelve(name, one.token or "")
    one = await play.placed("runs", {"VCPU": 1})
    await play.fleet.claims.confirm("runs", one.token or "")
    await play.placed("other", {"VCPU": 1}, project="ops")
    await play.does(WEB, dry_run=True, **more)
    page = await play.does(WEB, limit=2, **more)
    await play.does(WEB, limit=2, after=page.next or "", **more)
    await play.does(WEB, **more)
    await play.does(ClaimFilter(owner=[""], cell="c1", claimed_before_ms=1), **more)
    await play.does(ClaimFilter(project=["nobody", "no-one"]), **more)


@contract(Bulk.release, Bulk.renew, Bulk.shelve, Bulk.unshelve)
async def test_refused_filters(play: Play) -> None:
    more = given(play)
    await play.refuses(InvalidRequest, ClaimFilter(), **more)
    await play.refuses(NotFound, ClaimFilter(cell="elsewhere"), **more)
    await play.refuses(InvalidRequest, WEB, after="no cursor", **more)
    await play.refuses(InvalidRequest, WEB, limit=0, **more)


@contract(Bulk.renew)
async def test_refused_leases(play: Play) -> None:
    for lease_s in (0, 10**9):
        await play.refuses(InvalidRequest, WEB, lease_s)


@contract(Bulk.release)
async def test_releasing_at_once(play: Play) -> None:
    one = await play.placed()
    await play.fleet.claims.confirm("mine", one.token or "")
    await play.does(WEB)
    await play.does(WEB, force=True)


@contract(Bulk.unshelve)
async def test_results_with_problems(play: Play) -> None:
    """One claim is refused, and the other is unshelved."""
    for name, vcpu in (("big", 8), ("small", 1)):
        one = await play.placed(name, {"VCPU": vcpu})
        await play.fleet.claims.shelve(name, one.token or "")
    await play.placed("holds", {"VCPU": 2}, project="ops", hosts=frozenset({"h1"}))
    found = await play.does(WEB)
    assert [one.outcome for one in found.results] == ["refused", "unshelved"]


@contract(Bulk.unshelve)
async def test_another_state(play: Play) -> None:
    await play.refuses(InvalidRequest, ClaimFilter(project="web", state="active"))
