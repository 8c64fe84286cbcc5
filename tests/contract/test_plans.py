"""Plans are the same on a scheduler and over REST, and so is carrying them out."""

from redsched.errors import InvalidRequest, NotFound
from redsched.model import Hints, HostReport, Inventory, Request
from redsched.model.records.plans import Aim, Move
from redsched.operations.plans import Plans
from tests.contract.parts import STALE, Play, contract

SMALL = Request({"VCPU": 1})


@contract(Plans.capacity)
async def test_capacity(play: Play) -> None:
    await play.placed()
    await play.does(SMALL)
    await play.does(SMALL, n_plus_one="zone")
    await play.does(SMALL, "label:rack")
    await play.does(Request({"VCPU": 100}))
    await play.refuses(NotFound, Request({"VCPU": 1}, server_group="nobodys"))
    await play.refuses(NotFound, Request({"VCPU": 1}, hints=Hints(same_host=frozenset({"nobody"}))))
    await play.refuses(InvalidRequest, SMALL, "rack")
    await play.refuses(InvalidRequest, Request({"VCPU": 1}, claim_ids=("a",)))


@contract(Plans.drain, Plans.without)
async def test_leaving(play: Play) -> None:
    await play.placed("a", {"VCPU": 3})
    await play.placed("b", {"VCPU": 5})
    await play.does(["h1"])
    await play.does(("h1", "h2"))
    await play.refuses(NotFound, ["h9"])
    await play.refuses(InvalidRequest, [])
    await play.refuses(InvalidRequest, ["a/b"])


@contract(Plans.with_hosts)
async def test_further_hosts(play: Play) -> None:
    new = HostReport("n1", {"VCPU": Inventory(16), "DISK_GB": Inventory(10)}, zone="az3")
    await play.does([new])
    await play.does([new, HostReport("n2", {"VCPU": Inventory(1)})], SMALL)
    await play.refuses(NotFound, [new], Request({"VCPU": 1}, server_group="nobodys"))
    await play.refuses(InvalidRequest, [])
    await play.refuses(InvalidRequest, [new, new])
    await play.refuses(InvalidRequest, [HostReport("h1", {"VCPU": Inventory(1)})])
    await play.refuses(InvalidRequest, [new], Request({"VCPU": 1}, claim_ids=("a",)))


@contract(Plans.rebalance)
async def test_rebalancing(play: Play) -> None:
    await play.placed("a", {"VCPU": 3}, zones=frozenset({"az1"}))
    await play.fleet.claims.confirm("a", (await play.fleet.claims.get("a")).token)
    await play.does(Aim.REQUEST, request=Request({"VCPU": 7}))
    await play.does(Aim.DRAIN, hosts=["h1"])
    await play.does(Aim.POLICY, policy="spread")
    await play.does(Aim.WAITING)
    await play.refuses(NotFound, Aim.DRAIN, hosts=["h9"])
    await play.refuses(InvalidRequest, Aim.DRAIN)
    await play.refuses(InvalidRequest, Aim.REQUEST)
    await play.refuses(InvalidRequest, Aim.POLICY, policy="nobodys")
    await play.refuses(InvalidRequest, Aim.WAITING, max_moves=0)
    await play.refuses(InvalidRequest, Aim.WAITING, request=SMALL)


@contract(Plans.apply)
async def test_applying(play: Play) -> None:
    one = await play.placed("a", {"VCPU": 1})
    await play.fleet.claims.confirm("a", one.token or "")
    target = {"h1": "h2", "h2": "h1"}[one.host]
    await play.does([Move("nobody", "web", STALE, "h1", "h2", "")], 1)
    await play.does([Move("a", "web", STALE, one.host, target, "")], 1)
    await play.does([Move("a", "web", one.token or "", one.host, target, "")], 1)
