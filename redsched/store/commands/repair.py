"""Scripts that repair what an audit has found: each checks it again, at one instant, before it writes.

`reason` is recorded with the repair in the feed and the event log.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from redsched.errors import StoreUnavailable
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.fields import claim_from
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.base import MAX_TRIES, CellClient
from redsched.store.commands.hosts import HostCommands

LOST_LEASE_MS = 120_000
"""The lease given to a claim whose own deadline is lost."""


class RepairCommands:
    """One coroutine for each repair script."""

    def __init__(self, cell: CellClient, hosts: HostCommands) -> None:
        self._cell = cell
        self._hosts = hosts

    async def host(self, host: str, reason: str, suspects: Iterable[str] = ()) -> ScriptResult:
        """Recompute a host's set of claims, sums and deadlines. (repair_host.lua)

        OK | ALREADY_DONE | UNKNOWN | NOT_ATTESTED | CONFLICT (an amount of a claim is not a whole number). `suspects`:
        ids of claims that may be on it although they are not in its set.
        """

        def call(ids: Sequence[str]) -> tuple[list[str], Sequence[str | int]]:
            keys = [
                *self._cell.keys.due,
                self._cell.keys.host(host),
                self._cell.keys.claims(host),
                *map(self._cell.keys.claim, ids),
            ]
            return keys, (host, reason, LOST_LEASE_MS, *ids)

        return await self._with_ids("repair_host", host, suspects, call)

    async def members(self, host: str, reason: str) -> ScriptResult:
        """Count the members of groups on a host by its zone and labels. (repair_members.lua)

        OK | ALREADY_DONE | UNKNOWN | SETTLING.
        """
        keys = (self._cell.keys.host(host), self._cell.keys.attributes(host), self._cell.keys.claims(host))
        counting = dict[str, None]()
        for _ in range(MAX_TRIES):
            counted = self._cell.keys.object_keys(counting)
            answer = await self._cell.answer("repair_members", (*keys, *counted), (host, reason))
            if answer.outcome is not Outcome.RETRY:
                return answer
            counting.update(dict.fromkeys(answer.facts))
        raise StoreUnavailable(f"the claims of {host} change faster than they can be read: try again")

    async def removed_host(self, host: str, reason: str, operator: bool, suspects: Iterable[str] = ()) -> ScriptResult:
        """Remove the remaining keys of a host that no longer exists. (repair_gone_host.lua)

        OK | ALREADY_DONE | IN_USE | SETTLING. With `operator`, claims that the host had accepted end too; without, they
        are kept (IN_USE).
        """
        objects: dict[str, None] = {}

        def call(ids: Sequence[str]) -> tuple[list[str], Sequence[str | int]]:
            keys = [
                *self._cell.keys.due,
                self._cell.keys.host(host),
                self._cell.keys.claims(host),
                self._cell.keys.inbox(host),
            ]
            keys += [self._cell.keys.attributes(host), self._cell.keys.removed(host), *map(self._cell.keys.claim, ids)]
            keys += self._cell.keys.object_keys(objects)
            return keys, (host, reason, int(operator), *ids)

        return await self._with_ids("repair_gone_host", host, suspects, call, objects)

    async def counts(self, subject: str, version: str, reason: str, claim_ids: Sequence[str]) -> ScriptResult:
        """Recompute the counts of a `server-group:web`, `pool:licences` or `quota:web` from all of its claims.

        `version`: that of the object, read before the search for its claims. OK | ALREADY_DONE | SETTLING | CONFLICT |
        RETRY. (repair_counts.lua)
        """
        keys = (*map(self._cell.keys.claim, claim_ids), *self._cell.keys.object_keys([subject]))
        return await self._cell.answer("repair_counts", keys, (version, reason, *claim_ids))

    async def due(self, reason: str, claim_ids: Sequence[str]) -> ScriptResult:
        """Recompute deadlines and reconciliation times of claims. OK | ALREADY_DONE | SETTLING. (repair_due.lua)"""
        keys = (*self._cell.keys.due, self._cell.keys.events, *map(self._cell.keys.claim, claim_ids))
        return await self._cell.answer("repair_due", keys, (reason, *claim_ids))

    async def gang(self, gang: str, reason: str, members: Sequence[str]) -> ScriptResult:
        """Repair the list of members that a gang waits for. OK | ALREADY_DONE | SETTLING | RETRY. (repair_gang.lua)"""
        keys = (self._cell.keys.gang(gang), self._cell.keys.events, *map(self._cell.keys.claim, members))
        return await self._cell.answer("repair_gang", keys, (gang, reason, *members))

    async def restore(self, claims: Mapping[str, Mapping[str, str]]) -> ScriptResult:
        """Restore claims of an exported cell as they were. OK | UNKNOWN | IN_USE | CONFLICT. (restore.lua)

        Their hosts must not have attested. Facts: the ids that the store already had, which stay as they are.
        """
        objects = {name for id_, one in claims.items() for name in counted_by(claim_from(self._cell.name, id_, one))}
        parts: list[str | int] = []
        for claim_id, fields in claims.items():
            parts += (claim_id, 2 * len(fields), *flat(fields))
        for _ in range(MAX_TRIES):
            keys = (
                *self._cell.keys.due,
                *map(self._cell.keys.claim, claims),
                *self._cell.keys.object_keys(sorted(objects)),
            )
            answer = await self._cell.answer("restore", keys, (LOST_LEASE_MS, len(claims), *parts))
            if answer.outcome is not Outcome.RETRY:
                return answer
            objects.update(answer.facts)
        raise StoreUnavailable("the objects that these claims count in change faster than they can be read: try again")

    async def _with_ids(
        self,
        script: str,
        host: str,
        suspects: Iterable[str],
        call: Callable[[Sequence[str]], tuple[list[str], Sequence[str | int]]],
        objects: dict[str, None] | None = None,
    ) -> ScriptResult:
        """Run a script with all ids of the host's set and the suspects; repeat it if ids were added in the meantime."""
        suspects = set(suspects)
        for _ in range(MAX_TRIES):
            keys, arguments = call(sorted(await self._hosts.claim_ids(host) | suspects))
            answer = await self._cell.answer(script, keys, arguments)
            if answer.outcome is not Outcome.RETRY:
                return answer
            if objects is not None:
                objects.update(dict.fromkeys(answer.facts))
        raise StoreUnavailable(f"the claims of {host} change faster than they can be read: try again")
