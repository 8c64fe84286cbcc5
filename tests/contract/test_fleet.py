"""Selections, explanations, and what there is to read of a fleet are the same on a scheduler and over REST."""

from dataclasses import replace

from redsched.errors import (
    ClaimIdReused,
    ClaimState,
    InvalidRequest,
    NotConfirmed,
    NotFound,
    NoValidHost,
    QuotaExceeded,
)
from redsched.model import GangMember, OnExit, Quota, Request
from redsched.model.filters import UsageBy
from redsched.model.records.capacity import CapacityBy
from redsched.operations.fleet import Fleet
from redsched.release import release
from tests.contract.parts import Play, contract, over_rest
from tests.support.waiting import wait_until

ONE = Request({"VCPU": 1}, claim_ids=("one",), project="web")


@contract(Fleet.select)
async def test_selecting(play: Play) -> None:
    await play.fleet.quotas.put(Quota("web", {"VCPU": 4}))
    await play.does(ONE)
    await play.does(ONE)
    await play.does(Request({"VCPU": 1}, claim_ids=("a", "b"), count=2, alternates=1, consumer="ann"))
    await play.refuses(ClaimIdReused, Request({"VCPU": 2}, claim_ids=("one",), project="web"))
    await play.refuses(NoValidHost, Request({"VCPU": 100}, claim_ids=("big",)))
    await play.refuses(QuotaExceeded, Request({"VCPU": 4}, claim_ids=("big",), project="web"))
    await play.refuses(NotFound, Request({"VCPU": 1}, claim_ids=("c",), server_group="nobodys"))
    await play.refuses(NoValidHost, Request({"VCPU": 1}, claim_ids=("c",), zones=frozenset({"az9"})))
    await play.refuses(InvalidRequest, Request({"VCPU": 1}, claim_ids=("c",), policy="nobodys"))
    await play.fleet.claims.release("one", force=True)
    await play.refuses(ClaimState, ONE)


@contract(Fleet.select)
async def test_selecting_what_hosts_are_told(play: Play) -> None:
    told = Request({"VCPU": 1}, claim_ids=("a",), payload={"argv": ["a"]}, max_runtime_s=60, on_exit=OnExit.REPLACE)
    await play.does(told)
    await play.does(replace(told, claim_ids=("b",), queue_timeout_s=1))


@contract(Fleet.select, Fleet.dry_run)
async def test_selecting_a_gang(play: Play) -> None:
    ids = ("a", "b", "c") if play.operation is Fleet.select else ()
    db, web = Request({"VCPU": 3}, count=2), GangMember("web", Request({"MEMORY_MB": 64}))
    await play.does(Request(members=(GangMember("db", db), web), claim_ids=ids))
    await play.refuses(NoValidHost, Request(members=(GangMember("db", replace(db, count=4)), web)))


@contract(Fleet.select)
async def test_selecting_until_it_runs(play: Play) -> None:
    await play.refuses(NotConfirmed, Request({"VCPU": 1}, claim_ids=("c",), until="active", confirm_timeout_s=1))


@contract(Fleet.dry_run)
async def test_a_dry_run(play: Play) -> None:
    await play.does(Request({"VCPU": 1}, alternates=1))
    await play.does(Request({"VCPU": 1}, count=2))
    await play.refuses(NoValidHost, Request({"VCPU": 100}))
    await play.refuses(NotFound, Request({"VCPU": 1}, server_group="nobodys"))


@contract(Fleet.explain)
async def test_explaining(play: Play) -> None:
    await play.placed("mine", {"VCPU": 3})
    await play.does(Request({"VCPU": 6, "MEMORY_MB": 1}))
    await play.does(Request({"VCPU": 100}), ["h1", "h2"])
    await play.does(Request({"VCPU": 1}), limit=1)
    await play.does(Request({"VCPU": 1}), "h1", limit=1, after="h1")
    await play.refuses(NotFound, Request({"VCPU": 1}), "h9")
    await play.refuses(NotFound, Request({"VCPU": 1}, server_group="nobodys"))
    await play.refuses(InvalidRequest, Request({"VCPU": 1}), "a/b")
    await play.refuses(InvalidRequest, Request({"VCPU": 1}), limit=-1)


@contract(Fleet.usage)
async def test_usage(play: Play) -> None:
    await play.placed()
    await play.placed("other", project="ops")
    await play.does()
    await play.does(UsageBy.PROJECT)
    await play.does(["class", "zone", "project"])
    await play.does("zone,project")
    await play.refuses(InvalidRequest, "host")


@contract(Fleet.capacity)
async def test_capacity(play: Play) -> None:
    await play.placed()
    await play.does()
    for by in (*CapacityBy, "zone"):
        await play.does(by)
    await play.refuses(InvalidRequest, "host")


@contract(Fleet.status)
async def test_status(play: Play) -> None:
    async def is_announced() -> bool:
        return bool((await play.fleet.status()).cells[0].schedulers)

    await wait_until(is_announced, what="a scheduler has announced itself")
    await play.does()
    await play.fleet.hosts.write_off("h1", force=True)
    await play.does()


async def test_only_an_api_describes_itself(clean_store: str) -> None:
    async with over_rest(clean_store) as client:
        about = await client.about()
    assert (about.name, about.version, about.role) == ("redsched", release(), "operator")
