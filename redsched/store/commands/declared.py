"""Scripts about what operators declare: aggregates, server groups, shared pools, quotas."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from redsched.model import Aggregate, Quota, ServerGroup, SharedPool
from redsched.store.codec.fields import aggregate_fields, group_fields, pool_fields, quota_fields
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CHUNK, CellClient, chunks
from redsched.store.commands.hosts import HostCommands

Fields = Mapping[str, str]
THINGS_AT_ONCE = 20
"""Hashes in one pipeline: a large server group has thousands of counts, a millisecond to read."""


class DeclaredCommands:
    """One coroutine for each thing that an operator can declare or delete, and reads of them."""

    def __init__(self, cell: CellClient, hosts: HostCommands) -> None:
        self._cell = cell
        self._hosts = hosts

    async def put_aggregate(self, aggregate: Aggregate) -> ScriptResult:
        """Replace an aggregate's metadata and the set of its hosts.

        OK | ALREADY_DONE; facts: its hosts that are not known. The hosts follow in chunks: who reads meanwhile may see
        a part of them. (declare.lua, membership.lua)
        """
        answer = await self._declare(Kind.AGGREGATE, aggregate.name, aggregate_fields(aggregate))
        members = await self._set_members(aggregate.name, aggregate.hosts)
        return replace(answer if answer.outcome is Outcome.OK else members, facts=members.facts)

    async def delete_aggregate(self, name: str, force: bool = False) -> ScriptResult:
        """Take an aggregate back.

        OK | UNKNOWN | IN_USE (it has hosts; facts: some of them). With `force` they leave it. (membership.lua,
        undeclare.lua)
        """
        if not force and (members := await self.members(name)):
            return replace(
                await self._cell.answer("tick", (self._cell.keys.deadlines,)),
                outcome=Outcome.IN_USE,
                facts=tuple(members[:CHUNK]),
            )
        await self._set_members(name, frozenset())
        return await self._undeclare(Kind.AGGREGATE, name, force)

    async def put_group(self, group: ServerGroup) -> ScriptResult:
        """Declare a server group.

        OK | ALREADY_DONE | IN_USE (it has members: only max_per_host may change). (declare.lua) IN_USE with facts: it
        was taken back by force, and by these topologies not all of its members are counted.
        """
        return await self._declare(Kind.SERVER_GROUP, group.name, group_fields(group))

    async def delete_group(self, name: str, force: bool = False) -> ScriptResult:
        """Take a server group back. OK | UNKNOWN | IN_USE (it has members). (undeclare.lua)"""
        return await self._undeclare(Kind.SERVER_GROUP, name, force)

    async def put_pool(self, pool: SharedPool) -> ScriptResult:
        """Declare a shared pool; what is claimed of it stays. OK | ALREADY_DONE. (declare.lua)"""
        return await self._declare(Kind.POOL, pool.name, pool_fields(pool))

    async def delete_pool(self, name: str, force: bool = False) -> ScriptResult:
        """Take a shared pool back. OK | UNKNOWN | IN_USE (something of it is claimed). (undeclare.lua)"""
        return await self._undeclare(Kind.POOL, name, force)

    async def put_quota(self, quota: Quota, cells: Sequence[str] = ()) -> ScriptResult:
        """Declare the quota of a project, over these cells where there are several. OK | ALREADY_DONE. (declare.lua)"""
        return await self._declare(Kind.QUOTA, quota.project, quota_fields(quota, cells))

    async def delete_quota(self, project: str) -> ScriptResult:
        """Take the quota of a project back. OK | UNKNOWN. (undeclare.lua)"""
        return await self._undeclare(Kind.QUOTA, project, force=True)

    async def names(self, kind: Kind) -> list[str]:
        """The names of the declared things of a kind, in order."""
        with self._cell.reading():
            return sorted(await self._cell.reader.smembers(self._place(kind)[1]))

    async def read(self, kind: Kind, names: Sequence[str]) -> dict[str, Fields]:
        """The hashes of some things of a kind by name; those that are not there are left out."""
        found: dict[str, Fields] = {}
        for chunk in chunks(names, THINGS_AT_ONCE):
            hashes = await self._cell.hashes([self._place(kind, name)[0] for name in chunk])
            found.update((name, fields) for name, fields in zip(chunk, hashes, strict=True) if fields)
        return found

    async def members(self, aggregate: str) -> list[str]:
        """The hosts that are in an aggregate, in order."""
        found: list[str] = []
        for chunk in chunks(await self._hosts.names()):
            pipe = self._cell.reader.pipeline(transaction=False)
            for host in chunk:
                pipe.hget(self._cell.keys.host(host), f"aggregate.{aggregate}")
            with self._cell.reading():
                marks = await pipe.execute()
            found += (host for host, mark in zip(chunk, marks, strict=True) if mark == "1")
        return sorted(found)

    async def _declare(self, kind: Kind, name: str, fields: Fields) -> ScriptResult:
        return await self._cell.answer("declare", self._place(kind, name), (kind.value, name, *flat(fields)))

    async def _undeclare(self, kind: Kind, name: str, force: bool) -> ScriptResult:
        return await self._cell.answer("undeclare", self._place(kind, name), (kind.value, name, int(force)))

    async def _set_members(self, aggregate: str, wanted: frozenset[str]) -> ScriptResult:
        """Have exactly these hosts be in it. OK | ALREADY_DONE; facts: those of them that are not known."""
        hosts = sorted(wanted.union(await self._hosts.names()))
        answers = []
        for chunk in chunks(hosts):
            marks = flat((host, int(host in wanted)) for host in chunk)
            answers.append(
                await self._cell.answer("membership", [*map(self._cell.keys.host, chunk)], (aggregate, *marks))
            )
        changed = any(one.outcome is Outcome.OK for one in answers)
        unknown = tuple(host for one in answers for host in one.facts)
        return replace(answers[-1], outcome=Outcome.OK if changed else Outcome.ALREADY_DONE, facts=unknown)

    def _place(self, kind: Kind, name: str = "") -> tuple[str, str]:
        """The keys of a thing, and of the names of its kind."""
        if kind is Kind.AGGREGATE:
            return self._cell.keys.aggregate(name), self._cell.keys.aggregates
        if kind is Kind.SERVER_GROUP:
            return self._cell.keys.server_group(name), self._cell.keys.server_groups
        if kind is Kind.QUOTA:
            return self._cell.keys.quota(name), self._cell.keys.quotas
        return self._cell.keys.pool(name), self._cell.keys.pools
