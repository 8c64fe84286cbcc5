"""Plans on an exported cell: what the same cell would answer while it runs."""

from dataclasses import replace

import pytest

from redsched.errors import InvalidRequest, NotFound
from redsched.model import GroupPolicy, Quota, Request
from redsched.model.records.plans import Aim
from redsched.offline.plans import plans_on
from redsched.operate.plans import plans as plan_service
from redsched.operate.plans.cell_copy import free_by_class
from redsched.operate.plans.live import read_known
from redsched.settings import Settings
from redsched.store.codec.fields import claim_from
from redsched.store.embedded.server import PrivateServer
from tests.operate.plans.parts import archive, claim, copy, host
from tests.scheduler.working import at_work
from tests.support.builders.counted_claims import group

LIMIT_S = 60.0
ONE = Request({"VCPU": 1})
FLEET = [host(name, VCPU=8) for name in ("a", "b")]


async def test_the_answers_are_those_of_the_running_cell(clean_store: str) -> None:
    async with at_work(clean_store, 8, 6, 4) as work:
        await group(work.store, policy=GroupPolicy.SOFT_AFFINITY)
        for number, size in enumerate((3, 2, 2, 1)):
            await work.scheduler.select(Request({"VCPU": size}, claim_ids=(f"id{number}",), server_group="web"))
            await work.work()
        exported, live = await work.scheduler.export(), work.scheduler.plans
        two, more, asked = Request({"VCPU": 2}), [host("new", VCPU=7)], (Aim.REQUEST, 5, Request({"VCPU": 6}))
        with PrivateServer.start() as server:
            async with plans_on(server.url, exported, Settings(), LIMIT_S) as plans:
                assert await live.capacity(two, "host") == await plans.capacity(two, "host")
                assert await live.drain(["h0"]) == await plans.drain(["h0"])
                assert await live.without(["h0", "h1"]) == await plans.without(["h0", "h1"])
                assert await live.with_hosts(more, two) == await plans.with_hosts(more, two)
                assert await live.rebalance(*asked) == await plans.rebalance(*asked)
        await work.is_sound()


async def test_claims_keep_their_states_in_the_private_store(clean_store: str) -> None:
    """A host that attested to none of them would have to accept them again, and then no move of them is planned."""
    beside = {"host": "b", "state": "claimed", "token": "1-a.9", "root": "1-a.7", "amount.VCPU": "1"}
    others = {
        "claimed": claim("a", ONE, 1, state="claimed", gang="early", expires_at_ms="1"),
        "starting": claim("a", ONE, 2, state="starting", expires_at_ms="1"),
        "active": claim("a", ONE, 3, gang="early"),
        "ending": claim("a", ONE, 4, state="ending", end_reason="released"),
        "waits": claim("a", ONE, 5, {}, state="ended", end_reason="failed", retry_root="1-a.5", retry_from="1-a.5"),
        "moving": claim("b", ONE, 7, {"VCPU": 1}) | {f"placement.1-a.9.{name}": text for name, text in beside.items()},
    }
    one = archive(FLEET, others=others, requests=(ONE,))
    async with plans_on(clean_store, one, Settings(), LIMIT_S) as plans:
        [cell] = plans._cells
        found = await cell.store.claims.read(list(others))
        assert (await cell.store.tick()).settled
        known = await read_known(cell, ["a", "b"], waiting=True)
        loaded = known.copy(cell, Settings(), cell.plugins())
    expected = {name: claim_from("c1", name, fields) for name, fields in others.items()}
    assert {name: one.state for name, one in found.items()} == {name: one.state for name, one in expected.items()}
    for name, claim_found in found.items():
        places = [(place.host, place.state, place.token, place.slots) for place in claim_found.placements]
        assert places == [(one.host, one.state, one.token, one.slots) for one in expected[name].placements], name
    assert free_by_class(loaded.columns) == free_by_class(copy(one).columns)
    starting = [(name, loaded.columns.starting.item(loaded.columns.row(name) or 0)) for name in ("a", "b")]
    assert starting == [("a", 2), ("b", 1)]
    assert [waits.claim_id for waits in loaded.pending()] == ["waits"]
    assert loaded.unready == set()  # as after an import: the file does not have what a gang waits for


async def test_the_quota_of_the_project_is_shown_beside_the_room(clean_store: str) -> None:
    of_web = Request({"VCPU": 2}, project="web")
    one = archive(FLEET, {"mine": ("a", of_web)}, quotas=(Quota("web", {"VCPU": 10, "claims": 100}),))
    async with plans_on(clean_store, one, Settings(), LIMIT_S) as plans:
        assert (await plans.capacity(of_web)).quota == 4
        assert (await plans.capacity(ONE)).quota is None


async def test_hosts_and_topologies_are_checked_and_a_name_counts_once(clean_store: str) -> None:
    async with plans_on(clean_store, archive(FLEET, {"x": ("a", ONE)}), Settings(), LIMIT_S) as plans:
        for found in (await plans.drain(["a", "a"]), await plans.without(["a", "a"])):
            assert (found.hosts, len(found.moves), found.unplaced) == (("a",), 1, ())
        assert (await plans.rebalance(Aim.DRAIN, 5, hosts=["a", "a"])).before == 1
        with pytest.raises(NotFound, match="no host 'h9'"):
            await plans.drain(["h9"])
        with pytest.raises(NotFound, match="no host 'z'"):
            await plans.rebalance(Aim.DRAIN, 2, hosts=["z"])
        with pytest.raises(NotFound, match="no cell 'c2'"):
            await plans.with_hosts([replace(host("new", VCPU=1), cell="c2")])
        with pytest.raises(InvalidRequest, match="label:"):
            await plans.capacity(ONE, "rack")


async def test_however_many_claims_there_are_a_plan_reads_them(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process serves nobody else."""
    monkeypatch.setattr(plan_service, "MAX_LEAVING", 1)
    monkeypatch.setattr(plan_service, "MAX_CLAIMS", 1)
    held = dict.fromkeys(("x", "y", "z"), ("a", ONE))
    async with plans_on(clean_store, archive(FLEET, held), Settings(), LIMIT_S) as plans:
        assert len((await plans.drain(["a"])).moves) == 3
        assert (await plans.capacity(ONE, "host")).redundancy is not None


async def test_the_settings_of_the_usual_store_do_not_matter(clean_store: str) -> None:
    """A private store has no password, no other cells, and nothing that survives it."""
    usual = Settings(redis_password_file="/nowhere", durability="fsync", cells=("x", "y"))
    async with plans_on(clean_store, archive(FLEET), usual, LIMIT_S) as plans:
        assert (await plans.capacity(Request({"VCPU": 8}))).places == 2
