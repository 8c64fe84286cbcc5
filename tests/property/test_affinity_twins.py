"""The affinity rules of `decide` and of the claim script agree on every host, for any counts of a group.

If they differed, a host would be proposed and rejected until the request times out, or never be proposed. Members may
be in several domains or in none, as can happen when hosts restore claims after a loss of data. Hosts may be written
off, and a member on such a host may be the claim that is placed again.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from redsched.cache.columns import Columns
from redsched.cache.snapshot import take_snapshot
from redsched.decide.affinity import affinity_rules, claim_rules
from redsched.decide.lost_members import ignoring_lost_members, written_off_with
from redsched.decide.rules import Mask
from redsched.model import (
    Candidate,
    Claim,
    ClaimStatus,
    EndReason,
    GroupPolicy,
    HostReport,
    Inventory,
    Request,
    ServerGroup,
    Spread,
)
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, Member, Replacement
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.support.builders.cells import HOUR_S, open_host, raw_client
from tests.support.profiles import LONG_EXAMPLES, SHORT_EXAMPLES, is_long

BY = ("host", "zone", "label:rack")
HOSTS = {"h1": ("az1", "r1"), "h2": ("az1", "r2"), "h3": ("az2", "r2"), "h4": ("az3", "")}
DOMAINS = {"host": sorted(HOSTS), "zone": ["az1", "az2", "az3", "az9"], "label:rack": ["r1", "r2", "r9", ""]}

group = st.builds(
    ServerGroup,
    st.just("web"),
    st.sampled_from((GroupPolicy.AFFINITY, GroupPolicy.AFFINITY, GroupPolicy.ANTI_AFFINITY, GroupPolicy.SOFT_AFFINITY)),
    st.sampled_from(BY),
    count_by=st.just(("label:rack",)),
)
where = st.fixed_dictionaries({by: st.sampled_from(domains) for by, domains in DOMAINS.items()})
members = st.lists(where, max_size=6) | where.flatmap(lambda one: st.integers(0, 3).map(lambda times: [one] * times))
spreads = st.lists(st.builds(Spread, st.sampled_from(BY), st.integers(1, 3)), max_size=2, unique_by=lambda one: one.by)
eligible = st.frozensets(st.sampled_from(sorted(HOSTS)), min_size=1)
dead = st.frozensets(st.sampled_from(sorted(HOSTS)), max_size=3)


@asynccontextmanager
async def four_hosts(url: str) -> AsyncIterator[tuple[CellStore, Any]]:
    """Yield a cell of four hosts: two share a zone, two share a rack, one has no rack."""
    async with raw_client(url) as raw, Store.connect(url, Settings()) as store:
        await raw.flushall()
        cell = store.cell("c1")
        await cell.init()
        for name, (zone, rack) in HOSTS.items():
            labels = {"rack": rack} if rack else {}
            report = HostReport(name, {"VCPU": Inventory(8)}, zone=zone, labels=labels, lease_s=HOUR_S)
            await open_host(cell, name, report)
        yield cell, raw


def counts_of(there: Sequence[dict[str, str]]) -> dict[str, str]:
    """Return the fields in which a group's hash counts these members."""
    counts = Counter(f"count.{by}={domain}" for one in there for by, domain in one.items() if domain)
    return {"members": str(len(there))} | {field: str(number) for field, number in counts.items()}


def mask_of(columns: Columns, hosts: frozenset[str]) -> Mask:
    """Return the rows of these hosts as a mask: bool of shape (size,)."""
    return np.isin(np.arange(columns.size), columns.rows_of(sorted(hosts)))


def leaver(there: Sequence[dict[str, str]], which: int) -> Claim:
    """Return one of the members as a claim; a claim on an unknown host if there are no members."""
    at = there[which % len(there)] if there else {"host": "h0"}
    counted = {by: domain for by, domain in at.items() if by != "host" and domain}
    return Claim("old", "c1", at["host"], ClaimStatus.ACTIVE, "1-a.1", {}, server_group="web", counted=counted)


async def write(cell: CellStore, raw: Any, declared: ServerGroup, there: Sequence[dict[str, str]], old: Claim) -> None:
    """Write the group with its counts, and the claim that is placed again, to the store."""
    await raw.delete(cell.keys.server_group("web"))
    await cell.declared.put_group(declared)
    await raw.hset(cell.keys.server_group("web"), mapping=counts_of(there))
    fields = {"host": old.host, "state": "active", "token": old.token, "group": "web"}
    await raw.delete(cell.keys.claim("old"))
    await raw.hset(cell.keys.claim("old"), mapping=fields | {f"counted.{by}": one for by, one in old.counted.items()})
    await raw.hset(cell.keys.claim("other"), mapping={"host": old.host, "state": "active", "token": old.token})


async def write_off(cell: CellStore, raw: Any, lost: Collection[str]) -> None:
    """Mark exactly these hosts as written off."""
    epoch = (await cell.tick()).epoch
    for host in HOSTS:
        said = {"epoch": "lost" if host in lost else epoch, "written_off": epoch}
        await raw.hset(cell.keys.host(host), mapping=said)


def proposed(columns: Columns, request: Request, fit: frozenset[str]) -> set[str]:
    """Return those of the eligible hosts that pass all affinity rules of `decide`."""
    rows = np.flatnonzero(mask_of(columns, fit))
    left = np.ones(len(rows), bool)
    for rule in affinity_rules(request, columns, lambda _: mask_of(columns, fit)):
        left &= rule.passes(columns, rows)
    return {columns.name(row) for row in rows[left].tolist()}


async def taken(
    cell: CellStore, columns: Columns, request: Request, fit: frozenset[str], old: Claim | None
) -> set[str]:
    """Return those of these hosts that the claim script accepts. A second member without candidates prevents writes."""
    rules = tuple(claim_rules(request, columns, lambda _: mask_of(columns, fit), (0,)))
    again = Replacement(old.host, old.token, EndReason.MOVED) if old else None
    lost = written_off_with(columns, old) if old else ()
    clock, found = await cell.tick(), set[str]()
    for host in fit:
        places = (
            Member(old.claim_id if old else "a", (Candidate(host, {"VCPU": 1}),), "web", again),
            Member("other" if old else "b", (), replacement=again),
        )
        call = ClaimCall(
            places, clock.epoch, clock.now_ms, clock.seq, "d", True, HOUR_S * 1000, rules=rules, written_off=lost
        )
        answer = await cell.claims.place(call)
        assert answer.outcome is Outcome.FULL
        [seen] = answer.looked_at
        assert seen.cause in ("", "GROUP")
        found |= {host} if not seen.cause else set()
    return found


def test_decide_and_the_claim_script_say_the_same_of_every_host(server: PrivateServer) -> None:
    """Under the group's policy and under spreads, for a new member and for one that leaves its host."""

    async def compare(
        cell: CellStore,
        raw: Any,
        declared: ServerGroup,
        there: list[dict[str, str]],
        request: Request,
        fit: frozenset[str],
        lost: frozenset[str],
        old: Claim,
    ) -> None:
        await write(cell, raw, declared, there, old)
        await write_off(cell, raw, lost)
        columns, fit = (await take_snapshot(cell)).columns, fit - lost
        assert proposed(columns, request, fit) == await taken(cell, columns, request, fit, None)
        if old.host in HOSTS:
            before = columns.declared.describe()
            with ignoring_lost_members(columns, old):
                leaving = proposed(columns, request, fit)
            assert columns.declared.describe() == before
            assert leaving == await taken(cell, columns, request, fit, old)

    with asyncio.Runner() as loop:
        opened = four_hosts(server.url)
        cell, raw = loop.run(opened.__aenter__())

        @settings(max_examples=10 * (LONG_EXAMPLES if is_long() else SHORT_EXAMPLES))
        @given(group, st.integers(1, 3), members, spreads, eligible, dead, st.integers(0, 9))
        def check(
            declared: ServerGroup,
            most: int,
            there: list[dict[str, str]],
            spread: list[Spread],
            fit: frozenset[str],
            lost: frozenset[str],
            which: int,
        ) -> None:
            if declared.policy is GroupPolicy.ANTI_AFFINITY:
                declared = ServerGroup("web", declared.policy, declared.by, most, declared.count_by)
            request = Request({"VCPU": 1}, server_group="web", spread=tuple(spread))
            loop.run(compare(cell, raw, declared, there, request, fit, lost, leaver(there, which)))

        try:
            check()
        finally:
            loop.run(opened.__aexit__(None, None, None))
