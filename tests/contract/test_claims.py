"""The operations on claims do the same on a scheduler and over REST."""

from redsched.errors import ClaimState, InvalidRequest, NotFound, NoValidHost, QuotaExceeded, StaleToken
from redsched.model import Quota
from redsched.operations.claims import Claims
from tests.contract.parts import STALE, Play, contract


@contract(Claims.list)
async def test_listing(play: Play) -> None:
    await play.does()
    await play.placed("a")
    await play.placed("b", project="ops", consumer="ann")
    await play.placed("c", zones=frozenset({"az2"}))
    page = await play.does(limit=2)
    await play.does(after=page.next)
    for name, value in {"host": "h1", "project": "web", "consumer": "ann", "zone": "az2", "cell": "c1"}.items():
        await play.does(**{name: value})
    await play.does(state=["claimed", "active"], owner="", claimed_before_ms=2**50, claimed_after_ms=1)
    await play.does(state="shelved", project=["web", "ops"])
    await play.refuses(NotFound, cell="elsewhere")
    await play.refuses(InvalidRequest, owner="@me")
    await play.refuses(InvalidRequest, state="ended")
    await play.refuses(InvalidRequest, state="running")
    await play.refuses(InvalidRequest, state="shelved", host="h1")
    await play.refuses(InvalidRequest, after="no cursor")
    await play.refuses(InvalidRequest, limit=0)


@contract(Claims.get)
async def test_reading(play: Play) -> None:
    token = (await play.placed(alternates=1)).token or ""
    await play.does("mine")
    token = (await play.fleet.claims.fail("mine", token)).token
    await play.does("mine")
    await play.fleet.claims.confirm("mine", token)
    await play.fleet.claims.shelve("mine", token)
    await play.does("mine")
    await play.fleet.claims.release("mine", force=True)
    await play.does("mine")
    await play.refuses(NotFound, "nobody")
    await play.refuses(InvalidRequest, "a/b")


async def check_refusals(play: Play, token: str, *more: object) -> None:
    """Call a verb for a claim that is none, with tokens that are none, and for a claim that has ended."""
    await play.refuses(NotFound, "nobody", token, *more)
    await play.refuses(InvalidRequest, "a/b", token, *more)
    await play.refuses(StaleToken, "mine", STALE, *more)
    await play.refuses(InvalidRequest, "mine", "no token", *more)


@contract(Claims.confirm, Claims.shelve)
async def test_verbs_without_arguments(play: Play) -> None:
    token = (await play.placed()).token or ""
    await check_refusals(play, token)
    await play.does("mine", token)
    await play.does("mine", token)
    await play.fleet.claims.release("mine", force=True)
    await play.refuses(ClaimState, "mine", token)


@contract(Claims.renew)
async def test_renewing(play: Play) -> None:
    token = (await play.placed()).token or ""
    await check_refusals(play, token)
    await play.does("mine", token)
    await play.does("mine", token, lease_s=900)
    await play.refuses(InvalidRequest, "mine", token, 0)
    await play.refuses(InvalidRequest, "mine", token, 10**9)
    await play.fleet.claims.confirm("mine", token)
    await play.does("mine", token)
    await play.fleet.claims.release("mine", force=True)
    await play.refuses(ClaimState, "mine", token)


@contract(Claims.fail)
async def test_failing(play: Play) -> None:
    first = await play.placed(alternates=1)
    token = first.token or ""
    await check_refusals(play, token)
    await play.refuses(InvalidRequest, "mine", token, ["no host!"])
    again = await play.does("mine", token)
    await play.refuses(NoValidHost, "mine", again.token)
    await play.refuses(ClaimState, "mine", again.token)
    token = (await play.placed("ends")).token or ""
    await play.does("ends", token, ())


@contract(Claims.move)
async def test_moving(play: Play) -> None:
    token = (await play.placed()).token or ""
    await check_refusals(play, token)
    await play.refuses(InvalidRequest, "mine", token, ["no host!"])
    await play.refuses(InvalidRequest, "mine", token, deadline_s=-1)
    await play.refuses(InvalidRequest, "mine", token, queue_timeout_s=10**6)
    await play.fleet.claims.confirm("mine", token)
    await play.refuses(NoValidHost, "mine", token, ["h9"])
    big = (await play.placed("big", {"VCPU": 5})).token or ""
    await play.fleet.claims.confirm("big", big)
    await play.refuses(NoValidHost, "big", big)
    moved = await play.does("mine", token, ["h2"], live=True, deadline_s=600)
    await play.does("mine", token, ["h2"], live=True, deadline_s=600)
    await play.fleet.claims.confirm("mine", moved.token)
    await play.fleet.claims.release("mine", force=True)
    await play.refuses(ClaimState, "mine", moved.token)


@contract(Claims.resize)
async def test_resizing(play: Play) -> None:
    await play.fleet.quotas.put(Quota("web", {"VCPU": 6}))
    token = (await play.placed()).token or ""
    await check_refusals(play, token, {"VCPU": 3})
    token = (await play.does("mine", token, {"VCPU": 3})).token
    token = (await play.does("mine", token, slots={"VCPU": 4})).token
    await play.does("mine", token)
    await play.refuses(InvalidRequest, "mine", token, {"vcpu": 1})
    await play.refuses(InvalidRequest, "mine", token, {"VCPU": -1})
    await play.refuses(InvalidRequest, "mine", token, slots={"no slot!": 1})
    await play.refuses(QuotaExceeded, "mine", token, {"VCPU": 7})
    await play.fleet.quotas.delete("web")
    await play.refuses(NoValidHost, "mine", token, {"VCPU": 100})
    await play.fleet.claims.release("mine", force=True)
    await play.refuses(ClaimState, "mine", token, {"VCPU": 1})


@contract(Claims.unshelve)
async def test_unshelving(play: Play) -> None:
    token = (await play.placed()).token or ""
    await play.refuses(NotFound, "nobody")
    await play.refuses(InvalidRequest, "a/b")
    await play.fleet.claims.shelve("mine", token)
    await play.refuses(InvalidRequest, "mine", -1)
    await play.fleet.quotas.put(Quota("web", {"VCPU": 1}))
    await play.refuses(QuotaExceeded, "mine")
    await play.fleet.quotas.delete("web")
    await play.placed("big", {"VCPU": 7})
    await play.placed("large", {"VCPU": 3})
    await play.refuses(NoValidHost, "mine")
    await play.fleet.claims.release("large", force=True)
    await play.does("mine", 1)
    await play.does("mine")
    await play.fleet.claims.release("mine", force=True)
    await play.refuses(ClaimState, "mine")


@contract(Claims.release)
async def test_releasing(play: Play) -> None:
    token = (await play.placed()).token or ""
    await play.refuses(NotFound, "nobody")
    await play.refuses(InvalidRequest, "a/b")
    await play.refuses(StaleToken, "mine", STALE)
    await play.refuses(InvalidRequest, "mine", "no token")
    await play.fleet.claims.confirm("mine", token)
    await play.does("mine", token)
    await play.does("mine", force=True)
    await play.does("mine")
