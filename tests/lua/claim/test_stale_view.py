"""claim.lua answers STALE_VIEW to decisions older than a change that it does not check itself."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from redsched.model import (
    Aggregate,
    GroupPolicy,
    HostReport,
    HostStatus,
    Inventory,
    Pool,
    ServerGroup,
    SharedPool,
)
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from tests.support.builders.cells import HOUR_S, call_of, claim_on, member, new_epoch, nothing_written, open_host

Change = Callable[[CellStore], Awaitable[object]]

HOST = HostReport(
    "h1",
    {"VCPU": Inventory(8)},
    labels={"rack": "r1"},
    traits=frozenset({"CUSTOM_A"}),
    metrics={"cpu.percent": 1.0},
    pools={"numa0": Pool({"PCPU": Inventory(4)})},
    lease_s=HOUR_S,
)
FAST = Aggregate("fast", {"disk": "ssd"}, frozenset({"h1"}))
SEATS = SharedPool("lic", {"CUSTOM_SEAT": Inventory(9)})
GROUP = ServerGroup("db", GroupPolicy.AFFINITY)


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """Two hosts, an aggregate, a shared pool and a group."""
    await open_host(cell, "h1", HOST)
    await open_host(cell, "h2", replace(HOST, name="h2"))
    await cell.declared.put_aggregate(FAST)
    await cell.declared.put_pool(SEATS)
    await cell.declared.put_group(GROUP)
    return cell


def says(**said: Any) -> Change:
    return lambda cell: cell.hosts.report(replace(HOST, **said))


async def come_back(cell: CellStore) -> None:
    """Remove the host and open another one under its name."""
    await cell.hosts.forget("h1", force=True)
    await open_host(cell, "h1", replace(HOST, zone="az9"))


async def be_written_off(cell: CellStore) -> None:
    """Write the host off; it returns with another zone in the same epoch."""
    await cell.hosts.write_off("h1", force=True)
    await cell.hosts.report(replace(HOST, zone="az9"))
    await cell.hosts.set_status("h1", HostStatus.ENABLED)
    await cell.hosts.attest("h1", "")


DECIDED_ON: dict[str, Change] = {
    "metadata": lambda cell: cell.declared.put_aggregate(
        replace(FAST, metadata={"disk": "ssd", "filter_tenant_id": "web"})
    ),
    "membership": lambda cell: cell.declared.put_aggregate(replace(FAST, hosts=frozenset({"h1", "h2"}))),
    "a host leaves": lambda cell: cell.declared.put_aggregate(replace(FAST, hosts=frozenset())),
    "an aggregate is taken back": lambda cell: cell.declared.delete_aggregate("fast", force=True),
    "a pool": lambda cell: cell.declared.put_pool(replace(SEATS, aggregates=frozenset({"fast"}))),
    "a pool is taken back": lambda cell: cell.declared.delete_pool("lic"),
    "zone": says(zone="az9"),
    "another label": says(labels={"rack": "r2"}),
    "no label": says(labels={}),
    "trait": says(traits=frozenset()),
    "pool's trait": says(pools={"numa0": Pool({"PCPU": Inventory(4)}, traits=frozenset({"CUSTOM_B"}))}),
    "pool elsewhere": says(pools={**HOST.pools, "gpu0": Pool({"VGPU": Inventory(1)}, parent="numa0")}),
    "another host": come_back,
    "written off, and another": be_written_off,
}
CHECKED_OR_OF_THE_MOMENT: dict[str, Change] = {
    "amounts": says(inventories={"VCPU": Inventory(9)}, external={"VCPU": 1}),
    "metrics": says(metrics={"cpu.percent": 99.0, "gpu.percent": 1.0}),
    "the same report": says(),
    "a new host": lambda cell: open_host(cell, "h3", replace(HOST, name="h3", labels={"rack": "r9"})),
    "status": lambda cell: cell.hosts.set_status("h2", HostStatus.DISABLED),
    "a claim": lambda cell: claim_on(cell, "other", "h2"),
    "a group": lambda cell: cell.declared.put_group(replace(GROUP, policy=GroupPolicy.ANTI_AFFINITY)),
    "a group is taken back": lambda cell: cell.declared.delete_group("db"),
    "the same aggregate": lambda cell: cell.declared.put_aggregate(FAST),
    "the same pool": lambda cell: cell.declared.put_pool(SEATS),
}


@pytest.mark.parametrize("change", DECIDED_ON.values(), ids=DECIDED_ON)
async def test_what_was_decided_before_is_decided_again(cell: CellStore, raw: Any, change: Change) -> None:
    call = call_of(await cell.tick(), member("a", "h1"))
    await change(cell)
    async with nothing_written(raw):
        assert (await cell.claims.place(call)).outcome is Outcome.STALE_VIEW
    assert (await cell.claims.place(replace(call, seen_seq=(await cell.tick()).seq))).outcome is Outcome.OK


@pytest.mark.parametrize("change", CHECKED_OR_OF_THE_MOMENT.values(), ids=CHECKED_OR_OF_THE_MOMENT)
async def test_what_the_script_looks_at_itself_makes_nobody_decide_again(cell: CellStore, change: Change) -> None:
    """Neither what claim.lua checks itself nor values that are only valid for a moment."""
    call = call_of(await cell.tick(), member("a", "h1"))
    await change(cell)
    assert (await cell.claims.place(call)).outcome is Outcome.OK


async def test_ids_with_an_outcome_get_it_first(cell: CellStore) -> None:
    call = call_of(await cell.tick(), member("a", "h1"))
    await cell.claims.place(call)
    ended = call_of(await cell.tick(), member("b", "h1"))
    await cell.claims.place(ended)
    await cell.claims.release("h1", "b")
    await cell.declared.delete_aggregate("fast", force=True)
    assert (await cell.claims.place(call)).outcome is Outcome.ALREADY_DONE
    assert (await cell.claims.place(replace(call, digest="other"))).outcome is Outcome.CONFLICT
    assert (await cell.claims.place(ended)).outcome is Outcome.ENDED


async def test_another_epoch_is_reported_before_that(cell: CellStore) -> None:
    call = call_of(await cell.tick(), member("a", "h1"))
    await cell.declared.delete_aggregate("fast", force=True)
    await new_epoch(cell)
    assert (await cell.claims.place(call)).outcome is Outcome.WRONG_EPOCH
