"""Reads for audits only: hosts with their claims at one instant, and scans of all keys."""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence

from redsched import aio
from redsched.errors import StoreUnavailable
from redsched.pacing import Spread, paced
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import AuditedHost
from redsched.store.codec.wire import Reply, mapping_of
from redsched.store.commands.base import CLAIMS_AT_ONCE, MAX_TRIES, CellClient, chunks
from redsched.store.commands.hosts import HostCommands
from redsched.store.commands.texts import KEPT_MS


class AuditReads:
    """Reads for audits."""

    def __init__(self, cell: CellClient, hosts: HostCommands) -> None:
        self._cell = cell
        self._hosts = hosts

    async def hosts(self, hosts: Sequence[str]) -> AsyncIterator[AuditedHost]:
        """Yield hosts, each with its claims at one instant. Pass some tens of hosts at most. (audit.lua)"""
        replies = await aio.gather(map(self._audit, hosts))
        for host, (ids, reply) in zip(hosts, replies, strict=True):
            pairs = zip(ids, reply[3], strict=True)
            claims = {claim_id: mapping_of(one) async for claim_id, one in paced(pairs)}
            yield AuditedHost(host, mapping_of(reply[1]), frozenset(reply[2]), claims)

    async def _audit(self, host: str) -> tuple[list[str], Reply]:
        for _ in range(MAX_TRIES):
            ids = sorted(await self._hosts.claim_ids(host))
            keys = (self._cell.keys.host(host), self._cell.keys.claims(host), *map(self._cell.keys.claim, ids))
            reply = await self._cell.scripts.run("audit", keys, ids)
            if reply[0] != Outcome.RETRY:
                return ids, reply
        raise StoreUnavailable(f"the claims of {host} change faster than they can be read: try again")

    async def labels(self, host: str, topologies: Sequence[str]) -> dict[str, str]:
        """Return the labels that a host has now, by topology: `label:rack`."""
        fields = [f"label.{by.partition(':')[2]}" for by in topologies]
        with self._cell.reading():
            values = await self._cell.reader.hmget(self._cell.keys.attributes(host), fields)
        return {by: value for by, value in zip(topologies, values, strict=True) if value}

    async def claim_ids(self) -> list[str]:
        """Return the ids of all claims with a key in the cell, ended ones included. Scans all keys: for audits only."""
        return await self._names_after(self._cell.keys.claim(""))

    async def names(self, kind: Kind) -> list[str]:
        """Return the names of all objects of a kind with a key, declared or not. Scans all keys: for audits only."""
        return await self._names_after(self._cell.keys.object_keys([f"{kind}:"])[0])

    async def _names_after(self, prefix: str) -> list[str]:
        with self._cell.reading():
            # A cell's name has no glob characters, and braces are literal in patterns.
            return [key[len(prefix) :] async for key in self._cell.reader.scan_iter(match=f"{prefix}*", count=1000)]

    async def key_names(self) -> dict[str, Spread[bool]]:
        """Return all keys of the cell by their prefix: `{"claim": ids, "claims": hosts, "inbox": hosts, ...}`.

        Scans all keys: for audits only. Keys without a name after the prefix, such as `hosts`, are left out, and texts.
        """
        start, found = self._cell.keys.claim("").removesuffix("claim:"), defaultdict[str, Spread[bool]](Spread)
        with self._cell.reading():
            async for key in self._cell.reader.scan_iter(match=f"{start}*", count=500):
                kind, colon, name = key[len(start) :].partition(":")
                if colon and kind not in KEPT_MS:  # no audit reads texts, of which there may be as many as claims
                    found[kind][name] = True
        return dict(found)

    async def has_any(self, claim_ids: Sequence[str]) -> bool:
        """Return whether the cell has a claim, ended or not, with one of these ids. Pass some hundreds at most."""
        with self._cell.reading():
            return bool(await self._cell.reader.exists(*map(self._cell.keys.claim, claim_ids)))

    async def claim_hashes(self, ids: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the hashes of claims as stored, by id; missing ones are left out."""
        return await self._hashes(self._cell.keys.claim, ids)

    async def gang_hashes(self, ids: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the hashes of gangs, by id; missing ones are left out."""
        return await self._hashes(self._cell.keys.gang, ids)

    async def without_expiry(self, claim_ids: Sequence[str]) -> set[str]:
        """Return the ids of those claims whose keys have no expiry."""
        found: set[str] = set()
        for chunk in chunks(claim_ids):
            pipe = self._cell.reader.pipeline(transaction=False)
            for claim_id in chunk:
                pipe.pttl(self._cell.keys.claim(claim_id))
            with self._cell.reading():
                ends = await pipe.execute()
            found.update(claim_id for claim_id, end in zip(chunk, ends, strict=True) if end == -1)
        return found

    async def version_of(self, kind: str, name: str) -> str:
        """Return the version of a server group or shared pool, or the seq of a quota; '' if it does not exist."""
        field = "seq" if kind == Kind.QUOTA else "version"
        with self._cell.reading():
            return str(await self._cell.reader.hget(self._cell.keys.object_keys([f"{kind}:{name}"])[0], field) or "")

    async def _hashes(self, key_of: Callable[[str], str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for chunk in chunks(names, CLAIMS_AT_ONCE):
            hashes = await self._cell.hashes([key_of(name) for name in chunk])
            found.update((name, fields) for name, fields in zip(chunk, hashes, strict=True) if fields)
        return found
