"""What needs no script: reading the feed, hosts, claims, inboxes and what is due; entering the list of cells."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from redsched import aio
from redsched.errors import StoreUnavailable
from redsched.model import Claim, ClaimStatus, Reason
from redsched.pacing import Spread, paced, paged
from redsched.store.codec.fields import DRAINING_FIELDS, claim_from, draining_of, reason_from
from redsched.store.codec.keys import CELLS, Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import AuditedHost, Change, Clock, FeedEnd, HostHashes, InboxEntry, Poll
from redsched.store.codec.wire import Reply
from redsched.store.commands.base import CHUNK, CLAIMS_AT_ONCE, MAX_TRIES, CellBase, chunks
from redsched.store.topology.connection import reading

FEED_START = "0-0"
HOSTS_AT_ONCE = 50
"""Hosts whose ids of claims are read in one go."""
MEMBER = "member."
REQUEST_KEPT_MS = 24 * 3600 * 1000
"""As in include/placing/claim_write.lua."""
_HEAD = frozenset(("seq", "kind", "name", "version", "op", "more"))


class Reads(CellBase):
    """Reads of one cell."""

    async def poll(self, after: str, most: int) -> Poll:
        """The cell's clock and up to `most` entries of its feed after entry `after`.

        The clock is read first, so a cache that has applied what it names has seen all that was answered before.
        """
        pipe = self._reader.pipeline(transaction=False)
        pipe.hmget(self.keys.meta, "epoch", "seq", "settled")
        pipe.time()
        pipe.zrange(self.keys.deadlines, 0, 0, withscores=True)
        pipe.xrange(self.keys.changes, f"({after}", "+", count=most)
        with reading(self._url):
            meta, time, next_due, entries = await pipe.execute()
        deadline_ms = int(next_due[0][1]) if next_due else None
        return Poll(_clock(meta, time), deadline_ms, tuple(_change(entry_id, fields) for entry_id, fields in entries))

    async def changes(self, after: str, most: int) -> tuple[Change, ...]:
        """Up to `most` entries of the feed after entry `after`."""
        return (await self.poll(after, most)).changes

    async def enter(self) -> None:
        """Enter the cell in the list of cells, for those who look at the store by hand."""
        with reading(self._url):
            # A full server refuses the second even where there is nothing to add.
            if not await self._outside.sismember(CELLS, self.name):
                await self._outside.sadd(CELLS, self.name)

    async def feed_end(self) -> FeedEnd:
        """Where the feed ends now: the id of its newest entry and the clock, as of one instant.

        Without MULTI, which a full server refuses: what was read while nothing changed is of one instant.
        """
        pipe = self._reader.pipeline(transaction=False)
        while True:
            pipe.hmget(self.keys.meta, "epoch", "seq", "settled")
            pipe.time()
            pipe.xrevrange(self.keys.changes, count=1)
            pipe.hmget(self.keys.meta, "epoch", "seq", "settled")
            with reading(self._url):
                meta, time, newest, after = await pipe.execute()
            if meta == after:
                return FeedEnd(_clock(meta, time), str(newest[0][0]) if newest else FEED_START)

    async def host_names(self) -> list[str]:
        """The names of all hosts."""
        with reading(self._url):
            return list(await self._reader.zrange(self.keys.hosts, 0, -1))

    async def read_hosts(self, names: Sequence[str]) -> list[HostHashes]:
        """Hosts with all their fields, in one pipeline: keep `names` to some hundreds."""
        pipe = self._reader.pipeline(transaction=False)
        for name in names:
            pipe.hgetall(self.keys.host(name))
            pipe.hgetall(self.keys.attributes(name))
        with reading(self._url):
            hashes = await pipe.execute()
        return [
            HostHashes(name, {**host, **attributes} if host else {})
            for name, host, attributes in zip(names, hashes[::2], hashes[1::2], strict=True)
        ]

    async def held_ids(self, host: str) -> set[str]:
        """The ids of the claims on a host."""
        with reading(self._url):
            return set(await self._reader.smembers(self.keys.claims(host)))

    async def held_ids_of(self, hosts: Sequence[str]) -> list[set[str]]:
        """The ids of the claims on each of some hosts, in one pipeline."""
        pipe = self._reader.pipeline(transaction=False)
        for host in hosts:
            pipe.smembers(self.keys.claims(host))
        with reading(self._url):
            return [set(ids) for ids in await pipe.execute()]

    async def read_claims(self, ids: Iterable[str]) -> dict[str, Claim]:
        """The claims, ended ones that are still remembered included; ids that are not known are left out."""
        found: dict[str, Claim] = {}
        wanted = list(ids)
        for some in chunks(wanted, CLAIMS_AT_ONCE) if wanted else ():
            found |= await self._read_claims(some)
        return found

    async def _read_claims(self, ids: Sequence[str]) -> dict[str, Claim]:
        pipe = self._reader.pipeline(transaction=False)
        for claim_id in ids:
            pipe.hgetall(self.keys.claim(claim_id))
        with reading(self._url):
            hashes = await pipe.execute()
        pairs = zip(ids, hashes, strict=True)
        return {one: claim_from(self.name, one, fields) async for one, fields in paced(pairs) if fields}

    async def read_reasons(self, ids: Iterable[str]) -> dict[str, Reason]:
        """Why claims failed, expired or lost their work; those of which nothing is kept are left out."""
        wanted = list(ids)
        pipe = self._reader.pipeline(transaction=False)
        for claim_id in wanted:
            pipe.hgetall(self.keys.reason(claim_id))
        with reading(self._url):
            hashes = await pipe.execute() if wanted else []
        pairs = zip(wanted, hashes, strict=True)
        return {claim_id: reason_from(fields) for claim_id, fields in pairs if fields}

    async def living_on(self, hosts: Sequence[str]) -> AsyncIterator[list[Claim]]:
        """Yield the claims on these hosts that have not ended, by pages of hosts and CLAIMS_AT_ONCE claims at most.

        Each once, also one that moves and is on two of the hosts.
        """
        moving: set[str] = set()
        for some in chunks(hosts, HOSTS_AT_ONCE):
            ids = list(chain.from_iterable(await self.held_ids_of(some)))
            for part in chunks(ids, CLAIMS_AT_ONCE):
                claims = (await self.read_claims(part)).values()
                page = [one for one in claims if one.state is not ClaimStatus.ENDED and one.id not in moving]
                moving.update(one.id for one in page if len(one.placements) > 1)
                yield page

    async def inbox(self, host: str, after: str = FEED_START) -> list[InboxEntry]:
        """The hints that lie in a host's inbox after entry `after`."""
        return (await self.inboxes([host], after))[0]

    async def inboxes(self, hosts: Sequence[str], after: str = FEED_START) -> list[list[InboxEntry]]:
        """The inboxes of some hosts, read over the connection of their reports and confirms. (inbox.lua)"""
        if not hosts:
            return []
        reply = await self._runner.run("inbox", [self.keys.inbox(host) for host in hosts], (after,))
        return [[_inbox_entry(entry_id, _pairs(values)) for entry_id, values in entries] for entries in reply[1:]]

    async def due_claims(self, now_ms: int, offset: int, most: int) -> list[str]:
        """Ids of claims whose deadline has passed, oldest first."""
        with reading(self._url):
            return list(
                await self._reader.zrange(
                    self.keys.deadlines, "-inf", str(now_ms), byscore=True, offset=offset, num=most
                )
            )

    async def due_for_reconciliation(self, now_ms: int, offset: int, most: int) -> list[str]:
        """Ids of claims about which something is to be done by now, longest due first."""
        with reading(self._url):
            return list(
                await self._reader.zrange(
                    self.keys.reconcile, "-inf", str(now_ms), byscore=True, offset=offset, num=most
                )
            )

    async def reconcile_due_ms(self, claim_id: str) -> int | None:
        """When something is to be done about a claim (Unix, ms); None where nothing is."""
        with reading(self._url):
            score = await self._reader.zscore(self.keys.reconcile, claim_id)
        return None if score is None else int(score)

    async def read_gang(self, gang_id: str) -> dict[str, str]:
        """The members of a gang that have not ended, and the host of each; none once all of them were active."""
        with reading(self._url):
            fields = await self._reader.hgetall(self.keys.gang(gang_id))
        return {name[len(MEMBER) :]: host for name, host in fields.items() if name.startswith(MEMBER)}

    async def members_of_failed(self, gang_id: str) -> list[str] | None:
        """Return the members of a gang that have not ended; None unless one of its members has failed."""
        with reading(self._url):
            fields = await self._reader.hgetall(self.keys.gang(gang_id))
        return [name[len(MEMBER) :] for name in fields if name.startswith(MEMBER)] if "end_reason" in fields else None

    async def read_request(self, digest: str) -> str | None:
        """A request as canonical JSON; None where it is not kept any more."""
        return (await self.read_requests([digest])).get(digest)

    async def read_requests(self, digests: Sequence[str]) -> dict[str, str]:
        """Return requests as canonical JSON by digest, without those that are not kept any more."""
        with reading(self._url):
            texts = await self._reader.mget(map(self.keys.request, digests))
        return {digest: text for digest, text in zip(digests, texts, strict=True) if text is not None}

    async def missing_requests(self, digests: Iterable[str]) -> list[str]:
        """Return those digests whose request is not kept any more."""
        missing: list[str] = []
        for some in chunks(sorted(digests)):
            pipe = self._reader.pipeline(transaction=False)
            for digest in some:
                pipe.exists(self.keys.request(digest))
            with reading(self._url):
                found = await pipe.execute() if some else []
            missing += [digest for digest, is_there in zip(some, found, strict=True) if not is_there]
        return missing

    async def keep_requests(self, digests: Iterable[str]) -> None:
        """Keep these requests for another day."""
        async for some in paged(digests, CLAIMS_AT_ONCE):
            pipe = self._reader.pipeline(transaction=False)
            for digest in some:
                pipe.pexpire(self.keys.request(digest), REQUEST_KEPT_MS)
            with reading(self._url):
                await pipe.execute()

    async def draining_hosts(self, now_ms: int) -> dict[str, str]:
        """Return the hosts whose claims are to leave, and how, as `draining_of` says it."""
        with reading(self._url):
            names = sorted(await self._reader.smembers(self.keys.draining))
            pipe = self._reader.pipeline(transaction=False)
            for name in names:
                pipe.hmget(self.keys.host(name), DRAINING_FIELDS)
            found = await pipe.execute() if names else []
        hows = (draining_of(dict(zip(DRAINING_FIELDS, values, strict=True)), now_ms) for values in found)
        return {name: how for name, how in zip(names, hows, strict=True) if how}

    async def shelved_ids(self) -> Spread[bool]:
        """Return the ids of the claims that are shelved, or are being shelved."""
        found = Spread[bool]()
        with reading(self._url):
            async for claim_id in self._reader.sscan_iter(self.keys.shelved, count=CHUNK):
                found[claim_id] = True
        return found

    async def lapsed_hosts(self, since_ms: int, now_ms: int, offset: int, most: int) -> list[str]:
        """Hosts whose lease ended between two times (ms, inclusive), oldest first."""
        with reading(self._url):
            return list(
                await self._reader.zrange(
                    self.keys.hosts, str(since_ms), str(now_ms), byscore=True, offset=offset, num=most
                )
            )

    async def audited(self, hosts: Sequence[str]) -> AsyncIterator[AuditedHost]:
        """Some hosts, each with its claims at one instant: keep `hosts` to some tens. (audit.lua)"""
        replies = await aio.together(map(self._audit, hosts))
        for host, (ids, reply) in zip(hosts, replies, strict=True):
            pairs = zip(ids, reply[3], strict=True)
            claims = {claim_id: _pairs(one) async for claim_id, one in paced(pairs)}
            yield AuditedHost(host, _pairs(reply[1]), frozenset(reply[2]), claims)

    async def _audit(self, host: str) -> tuple[list[str], Reply]:
        for _ in range(MAX_TRIES):
            ids = sorted(await self.held_ids(host))
            keys = (self.keys.host(host), self.keys.claims(host), *map(self.keys.claim, ids))
            reply = await self._runner.run("audit", keys, ids)
            if reply[0] != Outcome.RETRY:
                return ids, reply
        raise StoreUnavailable(f"the claims of {host} change faster than they can be read: try again")

    async def deadlines(self) -> Spread[int]:
        """All deadlines: claim id -> Unix ms."""
        return await self._times(self.keys.deadlines)

    async def to_reconcile(self) -> Spread[int]:
        """All entries of `reconcile`: claim id -> Unix ms."""
        return await self._times(self.keys.reconcile)

    async def _times(self, key: str) -> Spread[int]:
        """A sorted set of times, in pages by time: what is put off meanwhile comes again, and counts as it is then."""
        found, since, passed = Spread[int](), float("-inf"), 0
        while True:
            with reading(self._url):
                page = await self._reader.zrange(
                    key, str(since), "+inf", byscore=True, offset=passed, num=CHUNK, withscores=True
                )
            found.update((name, int(at_ms)) for name, at_ms in page)
            if len(page) < CHUNK:
                return found
            last = page[-1][1]
            passed = (passed if last == since else 0) + sum(at_ms == last for _, at_ms in page)
            since = last

    async def all_claim_ids(self) -> list[str]:
        """The ids of all claims that the cell has a key for, ended ones included. Walks the keys: for audits only."""
        return await self._names_after(self.keys.claim(""))

    async def all_names(self, kind: Kind) -> list[str]:
        """The names of all things of a kind that have a key, declared or not. Walks the keys: for audits only."""
        return await self._names_after(self._thing_keys([f"{kind}:"])[0])

    async def _names_after(self, prefix: str) -> list[str]:
        with reading(self._url):
            # Glob characters cannot be in a cell's name, and its braces mean themselves.
            return [key[len(prefix) :] async for key in self._reader.scan_iter(match=f"{prefix}*", count=1000)]


def _clock(meta: Sequence[str | None], time: Sequence[int]) -> Clock | None:
    """None where there is no meta: a cell that is new, or was wiped."""
    epoch, seq, settled = meta
    if epoch is None:
        return None
    return Clock(epoch, int(seq or 0), int(time[0]) * 1000 + int(time[1]) // 1000, settled == "1")


def _change(entry_id: str, fields: Mapping[str, str]) -> Change:
    return Change(
        entry_id,
        int(fields["seq"]),
        fields["kind"],
        fields["name"],
        int(fields["version"]),
        fields["op"],
        int(fields["more"]),
        {name: value for name, value in fields.items() if name not in _HEAD},
    )


def _inbox_entry(entry_id: str, fields: Mapping[str, str]) -> InboxEntry:
    return InboxEntry(entry_id, int(fields["number"]), fields["epoch"], fields["op"], fields["claim"], fields["token"])


def _pairs(values: Sequence[Any]) -> dict[str, str]:
    return dict(zip(values[::2], values[1::2], strict=True))
