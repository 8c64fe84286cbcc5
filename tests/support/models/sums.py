"""The totals of claims, computed from their hashes: each counter, set and deadline must agree with them."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from redsched.model import LEASED, Claim, ClaimStatus, EndReason, Token
from redsched.model.validation import SHARED_POOL, split_slot
from redsched.store.cell import CellStore
from redsched.store.codec.fields import claim_from

Counts = Counter[tuple[str, str]]
"""Number by the end of a key (`host:h1`) and field."""


async def check_sums(cell: CellStore, raw: Any) -> None:
    """Fail unless all counters of the cell equal those of its claims, and all indexes of claims are right."""
    claims = await all_claims(cell, raw)
    assert await _counted(cell, raw) == _expected(claims.values())
    left_ms = await _left_ms(cell, raw, claims)
    assert await cell.due.deadlines() == {
        name: at for name, one in claims.items() if (at := _deadline(one)) is not None
    }
    for host in await cell.hosts.names():
        assert await cell.hosts.claim_ids(host) == {name for name, one in claims.items() if host in one.hosts}
        told = {one.entry_id for one in await cell.hosts.inbox(host)}
        assert told == {entry for one in claims.values() for entry in _notifications(one, host)}
        assert await raw.exists(cell.keys.inbox(host)) == bool(told)
    shelved = {name for name, one in claims.items() if _is_shelved(one)}
    assert set(await cell.claims.shelved_ids()) == shelved
    due_claims = set(await raw.zrange(cell.keys.reconcile, 0, -1))
    for name, one in claims.items():
        if one.state is not ClaimStatus.ENDED or name in shelved:
            assert left_ms[name] == -1, name
        elif name not in due_claims:
            assert left_ms[name] > 0, name
        if one.state is ClaimStatus.PENDING:
            assert name in due_claims


async def all_claims(cell: CellStore, raw: Any) -> dict[str, Claim]:
    """Return all claims of the cell by id."""
    start = len(cell.keys.claim(""))
    keys = [key async for key in raw.scan_iter(match=cell.keys.claim("*"), count=1000)]
    found = await read_hashes(raw, keys)
    return {key[start:]: claim_from(cell.name, key[start:], fields) for key, fields in found.items()}


async def read_hashes(raw: Any, keys: Collection[str]) -> dict[str, Mapping[str, str]]:
    """Read hashes in one round trip."""
    async with raw.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.hgetall(key)
        return dict(zip(keys, await pipeline.execute(), strict=True))


async def _left_ms(cell: CellStore, raw: Any, names: Collection[str]) -> dict[str, int]:
    """Return the time to live of each claim, by PTTL."""
    async with raw.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.pttl(cell.keys.claim(name))
        return dict(zip(names, await pipeline.execute(), strict=True))


def _is_shelved(claim: Claim) -> bool:
    if not claim.placements:
        return claim.state is ClaimStatus.ENDED and claim.end_reason is EndReason.SHELVED
    return claim.closed_reason is EndReason.SHELVED and all(
        Token.parse(one.root) <= Token.parse(claim.closed) for one in claim.placements
    )


def _deadline(claim: Claim) -> int | None:
    ends = [at for one in claim.placements for at in (one.expires_at_ms, one.move_deadline_ms) if at is not None]
    return min(ends, default=None)


def _notifications(claim: Claim, host: str) -> list[str]:
    """Return the entries of a host's inbox that the claim's placements there name."""
    names = {one.placed: f"placement.{one.placed}.inbox_id" for one in claim.placements if one.host == host}
    fields = [claim.raw.get(name) for name in names.values()]
    main = claim.placements[0] if claim.placements else None
    if main and main.host == host:
        fields.append(claim.raw.get("inbox_id"))
    return [entry for entry in fields if entry]


def _expected(claims: Any) -> Counts:
    counts: Counts = Counter()
    for claim in claims:
        for one in claim.placements:
            host = f"host:{one.host}"
            counts[host, "claims"] += 1
            counts[host, "starting"] += one.state in LEASED
            for slot, amount in one.slots.items():
                pool, name = split_slot(slot)
                shared = pool.startswith(SHARED_POOL)
                counts[pool if shared else host, f"claimed.{name if shared else slot}"] += amount
            if claim.server_group:
                group = f"server-group:{claim.server_group}"
                counts[group, "members"] += 1
                counts[group, f"count.host={one.host}"] += 1
                for topology, domain in one.counted.items():
                    counts[group, f"count.{topology}={domain}"] += 1
        if claim.project:
            counts.update(
                {(f"quota:{claim.project}", f"used.{name}"): number for name, number in _usage(claim).items()}
            )
    return +counts


def _usage(claim: Claim) -> Counter[str]:
    """Return what a claim uses of its project's quota: for each class, the most that one of its placements holds."""
    usage: Counter[str] = Counter()
    for one in claim.placements:
        usage |= Counter({"claims": 1})
        usage |= sum((Counter({split_slot(slot)[1]: amount}) for slot, amount in one.slots.items()), Counter[str]())
    return usage


async def _counted(cell: CellStore, raw: Any) -> Counts:
    counts: Counts = Counter()
    start = len(cell.keys.host("")) - len("host:")
    keys = [key async for key in raw.scan_iter(match=f"{cell.keys.host('')[:start]}*", count=1000)]
    counted = [key for key in keys if key[start:].startswith(("host:", "server-group:", "pool:", "quota:"))]
    for key, fields in (await read_hashes(raw, counted)).items():
        for field, value in fields.items():
            if field in ("claims", "starting", "members") or field.startswith(("claimed.", "count.", "used.")):
                counts[key[start:], field] += int(value)
    return +counts
