"""Server groups, shared pools and rules for tests of the store: helpers that declare them and claim under them."""

from dataclasses import replace
from typing import Any

from redsched.model import (
    Amounts,
    Candidate,
    ClaimRule,
    EndReason,
    GroupPolicy,
    HostLimit,
    HostReport,
    Inventory,
    ServerGroup,
    SharedPool,
)
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimReply, Member, Placed, Replacement
from tests.support.builders.cells import HOUR_S, call_of, open_host
from tests.support.builders.placements import arrive

SEAT = "pool:lic/CUSTOM_SEAT"


async def group(
    cell: CellStore,
    name: str = "web",
    policy: GroupPolicy = GroupPolicy.SOFT_AFFINITY,
    by: str = "host",
    most: int = 1,
    count_by: tuple[str, ...] = (),
) -> None:
    """Declare a server group; by default a soft one, whose policy restricts no member."""
    assert (await cell.declared.put_group(ServerGroup(name, policy, by, most, count_by))).outcome is Outcome.OK


async def pool(cell: CellStore, name: str = "lic", **totals: int) -> None:
    """Declare a shared pool; by default with 10 seats."""
    inventories = {slot: Inventory(total) for slot, total in (totals or {"CUSTOM_SEAT": 10}).items()}
    assert (await cell.declared.put_pool(SharedPool(name, inventories))).outcome is Outcome.OK


async def open_in(cell: CellStore, name: str, zone: str = "default", vcpu: int = 8, **labels: str) -> None:
    """Open a host in a zone, with labels."""
    await open_host(cell, name, HostReport(name, {"VCPU": Inventory(vcpu)}, zone=zone, labels=labels, lease_s=HOUR_S))


def joining(claim_id: str, *hosts: str, to: str = "web", amounts: Amounts | None = None, **more: int) -> Member:
    """Return a member of a group that may go to these hosts with the same amounts; 1 VCPU by default."""
    return Member(claim_id, tuple(Candidate(host, amounts or more or {"VCPU": 1}) for host in hosts), to)


def drawing(claim_id: str, *hosts: str, seats: int = 1, slot: str = SEAT) -> Member:
    """Return a member that takes 1 VCPU on one of these hosts and some seats of a shared pool."""
    return Member(claim_id, tuple(Candidate(host, {"VCPU": 1, slot: seats}) for host in hosts))


async def ask(
    cell: CellStore,
    *members: Member,
    rules: tuple[ClaimRule, ...] = (),
    limits: dict[str, HostLimit] | None = None,
    fresh: bool = True,
) -> ClaimReply:
    """Claim under rules and limits, with the current epoch and time."""
    call = call_of(await cell.tick(), *members, fresh=fresh)
    return await cell.claims.place(replace(call, rules=rules, limits=limits or {}))


async def given(cell: CellStore, *members: Member, rules: tuple[ClaimRule, ...] = ()) -> list[str]:
    """Claim successfully, and return the hosts."""
    answer = await ask(cell, *members, rules=rules)
    assert answer.outcome is Outcome.OK, answer
    return [one.host for one in answer.placed]


def causes(answer: ClaimReply) -> dict[str, str]:
    """Return the reason for each rejected host of a refusal."""
    assert answer.outcome is Outcome.FULL, answer
    return {one.host: one.cause for one in answer.looked_at}


async def counts(raw: Any, cell: CellStore, name: str = "web") -> dict[str, int]:
    """Return the counts of a group: `members`, and `host=h1`, `zone=az1` ... for each count."""
    fields = await raw.hgetall(cell.keys.server_group(name))
    return {
        field.removeprefix("count."): int(value)
        for field, value in fields.items()
        if field == "members" or field.startswith("count.")
    }


async def seats(raw: Any, cell: CellStore, name: str = "lic") -> int:
    """Return the claimed seats of a pool."""
    return int(await raw.hget(cell.keys.pool(name), "claimed.CUSTOM_SEAT") or 0)


AT_BOTH = {"members": 2, "host=h1": 1, "host=h2": 1, "zone=az1": 1, "zone=az2": 1}
"""What the group counts while a member has two placements, as after `begin_move`."""


async def begin_move(cell: CellStore) -> tuple[Placed, Placed]:
    """Claim `a` with 3 seats on h1 in az1, and begin its move to h2 in az2 with 2; return both placements."""
    await open_in(cell, "h1", "az1")
    await open_in(cell, "h2", "az2")
    await group(cell, count_by=("zone",))
    await pool(cell)
    first = (await ask(cell, joining("a", "h1", amounts={"VCPU": 1, SEAT: 3}))).placed[0]
    await arrive(cell, "a", first)
    replacement = Replacement("h1", first.token, EndReason.MOVED)
    member = replace(joining("a", "h2", amounts={"VCPU": 1, SEAT: 2}), replacement=replacement)
    answer = await cell.claims.place(call_of(await cell.tick(), member))
    assert answer.outcome is Outcome.OK
    return first, answer.placed[0]
