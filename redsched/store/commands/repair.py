"""Scripts that mend what an audit has found: each looks again at one instant before it writes. And what audits read.

`reason` goes with the repair into the feed and the event log.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from redsched.errors import StoreUnavailable
from redsched.pacing import Spread
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.fields import claim_from
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CLAIMS_AT_ONCE, MAX_TRIES, chunks
from redsched.store.commands.reads import REQUEST_KEPT_MS, Reads
from redsched.store.topology.connection import reading

LOST_LEASE_MS = 120_000
"""The lease of a claim whose own cannot be read any more."""


class MendCalls(Reads):
    """One coroutine for each script that mends something, and the reads that only an audit needs."""

    async def mend_host(self, host: str, reason: str, suspects: Iterable[str] = ()) -> ScriptResult:
        """Work out a host's claims, sums and deadlines anew.

        OK | ALREADY_DONE | UNKNOWN | NOT_ATTESTED | CONFLICT. (mend_host.lua) `suspects`: ids of claims that may be on
        it although its set does not have them. CONFLICT: an amount of a claim is no whole number.
        """

        def call(ids: Sequence[str]) -> tuple[list[str], Sequence[str | int]]:
            keys = [*self.keys.due, self.keys.host(host), self.keys.claims(host), *map(self.keys.claim, ids)]
            return keys, (host, reason, LOST_LEASE_MS, *ids)

        return await self._with_ids("mend_host", host, suspects, call)

    async def mend_gone_host(
        self, host: str, reason: str, operator: bool, suspects: Iterable[str] = ()
    ) -> ScriptResult:
        """Clear away what is left of a host that is not there.

        OK | ALREADY_DONE | IN_USE | SETTLING. (mend_gone_host.lua) With `operator` claims that it had taken up end too;
        without, they are left (IN_USE).
        """
        things: dict[str, None] = {}

        def call(ids: Sequence[str]) -> tuple[list[str], Sequence[str | int]]:
            keys = [*self.keys.due, self.keys.host(host), self.keys.claims(host), self.keys.inbox(host)]
            keys += [self.keys.attributes(host), self.keys.removed(host), *map(self.keys.claim, ids)]
            keys += self._thing_keys(things)
            return keys, (host, reason, int(operator), *ids)

        return await self._with_ids("mend_gone_host", host, suspects, call, things)

    async def mend_counts(self, thing: str, version: str, reason: str, claim_ids: Sequence[str]) -> ScriptResult:
        """Work out anew what a `server-group:web`, `pool:licences` or `quota:web` counts, from all its claims.

        `version`: its own, read before the claims were looked for. OK | ALREADY_DONE | SETTLING | CONFLICT | RETRY.
        (mend_counts.lua)
        """
        keys = (*map(self.keys.claim, claim_ids), *self._thing_keys([thing]))
        return await self._answer("mend_counts", keys, (version, reason, *claim_ids))

    async def mend_due(self, reason: str, claim_ids: Sequence[str]) -> ScriptResult:
        """Work out anew when something is due about claims. OK | ALREADY_DONE | SETTLING. (mend_due.lua)"""
        keys = (*self.keys.due, self.keys.events, *map(self.keys.claim, claim_ids))
        return await self._answer("mend_due", keys, (reason, *claim_ids))

    async def mend_gang(self, gang: str, reason: str, members: Sequence[str]) -> ScriptResult:
        """Have a gang be waited for as it should. OK | ALREADY_DONE | SETTLING | RETRY. (mend_gang.lua)"""
        keys = (self.keys.gang(gang), self.keys.events, *map(self.keys.claim, members))
        return await self._answer("mend_gang", keys, (gang, reason, *members))

    async def restore(self, claims: Mapping[str, Mapping[str, str]]) -> ScriptResult:
        """Put claims of an exported cell back, as they were. OK | UNKNOWN | IN_USE | CONFLICT. (restore.lua)

        Their hosts have not attested. Facts: the ids that the store had already, and that stay as they are.
        """
        things = {name for id_, one in claims.items() for name in counted_by(claim_from(self.name, id_, one))}
        parts: list[str | int] = []
        for claim_id, fields in claims.items():
            parts += (claim_id, 2 * len(fields), *flat(fields))
        for _ in range(MAX_TRIES):
            keys = (*self.keys.due, *map(self.keys.claim, claims), *self._thing_keys(sorted(things)))
            answer = await self._answer("restore", keys, (LOST_LEASE_MS, len(claims), *parts))
            if answer.outcome is not Outcome.RETRY:
                return answer
            things.update(answer.facts)
        raise StoreUnavailable("what these claims count in changes faster than it can be read: try again")

    async def keep_request(self, digest: str, text: str) -> None:
        """Put a request back that the store has lost. (keep.lua)"""
        await self._answer("keep", (self.keys.request(digest),), (text, REQUEST_KEPT_MS))

    async def key_names(self) -> dict[str, Spread[bool]]:
        """All keys of the cell by what they begin with: `{"claim": ids, "claims": hosts, "inbox": hosts, ...}`.

        Walks the keys: for audits only. Those without a name after that, such as `hosts`, are left out.
        """
        start, found = self.keys.claim("").removesuffix("claim:"), defaultdict[str, Spread[bool]](Spread)
        with reading(self._url):
            async for key in self._reader.scan_iter(match=f"{start}*", count=500):
                kind, colon, name = key[len(start) :].partition(":")
                if colon:
                    found[kind][name] = True
        return dict(found)

    async def claim_hashes(self, ids: Sequence[str]) -> dict[str, dict[str, str]]:
        """The hashes of claims as they lie in the store, by id; those that are not there are left out."""
        return await self._hashes(self.keys.claim, ids)

    async def gang_hashes(self, ids: Sequence[str]) -> dict[str, dict[str, str]]:
        """The hashes of gangs, by id; those that are not there are left out."""
        return await self._hashes(self.keys.gang, ids)

    async def lasting(self, claim_ids: Sequence[str]) -> set[str]:
        """Those of the claims whose keys have no end set."""
        found: set[str] = set()
        for chunk in chunks(claim_ids):
            pipe = self._reader.pipeline(transaction=False)
            for claim_id in chunk:
                pipe.pttl(self.keys.claim(claim_id))
            with reading(self._url):
                ends = await pipe.execute()
            found.update(claim_id for claim_id, end in zip(chunk, ends, strict=True) if end == -1)
        return found

    async def version_of(self, kind: str, name: str) -> str:
        """The version of a server group or shared pool, the seq of a quota; '' where there is none."""
        field = "seq" if kind == Kind.QUOTA else "version"
        with reading(self._url):
            return str(await self._reader.hget(self._thing_keys([f"{kind}:{name}"])[0], field) or "")

    async def _hashes(self, key_of: Callable[[str], str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for chunk in chunks(names, CLAIMS_AT_ONCE):
            pipe = self._reader.pipeline(transaction=False)
            for name in chunk:
                pipe.hgetall(key_of(name))
            with reading(self._url):
                hashes = await pipe.execute()
            found.update((name, fields) for name, fields in zip(chunk, hashes, strict=True) if fields)
        return found

    async def _with_ids(
        self,
        script: str,
        host: str,
        suspects: Iterable[str],
        call: Callable[[Sequence[str]], tuple[list[str], Sequence[str | int]]],
        things: dict[str, None] | None = None,
    ) -> ScriptResult:
        """Call with all ids of the host's set and the suspects, anew while others come in meanwhile."""
        suspects = set(suspects)
        for _ in range(MAX_TRIES):
            keys, arguments = call(sorted(await self.held_ids(host) | suspects))
            answer = await self._answer(script, keys, arguments)
            if answer.outcome is not Outcome.RETRY:
                return answer
            if things is not None:
                things.update(dict.fromkeys(answer.facts))
        raise StoreUnavailable(f"the claims of {host} change faster than they can be read: try again")
