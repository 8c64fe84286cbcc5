"""Scripts and reads about what operators declare: aggregates, server groups, shared pools, quotas."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from redsched.errors import StoreUnavailable
from redsched.model import Aggregate, Quota, ServerGroup, SharedPool
from redsched.model.conditions import IfMatch
from redsched.store.client.reads import exchange
from redsched.store.codec.fields import (
    HOSTS_DIGEST,
    aggregate_fields,
    digest,
    group_fields,
    pool_fields,
    quota_fields,
)
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult
from redsched.store.codec.tags import as_argument, definition_tag, is_definition, is_match
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CHUNK, MAX_TRIES, CellClient, chunks
from redsched.store.commands.hosts import HostCommands

Fields = Mapping[str, str]
OBJECTS_AT_ONCE = 20
"""The most hashes in one pipeline: a large server group has thousands of counts, which take a millisecond to read."""


class DeclaredCommands:
    """Coroutines to declare and delete each kind of object, and to read them."""

    def __init__(self, cell: CellClient, hosts: HostCommands) -> None:
        self._cell = cell
        self._hosts = hosts

    async def put_aggregate(self, aggregate: Aggregate, if_match: IfMatch = None) -> ScriptResult:
        """Replace an aggregate's metadata and the set of its hosts. OK | ALREADY_DONE | CHANGED.

        Facts: with CHANGED the tag, else the hosts that are not known. The hosts are written in several calls, so a
        concurrent reader may see only some of them; the tag changes once more when all are written. Writing stops if
        there is a later declaration: that is CHANGED for one with a condition. (declare.lua, membership.lua)
        """
        name, fields = aggregate.name, aggregate_fields(aggregate)
        answer = await self._declare(Kind.AGGREGATE, name, fields, if_match)
        if answer.outcome is Outcome.CHANGED:
            return answer
        members = await self._set_members(name, aggregate.hosts, fields[HOSTS_DIGEST])
        if members.outcome is not Outcome.STALE:
            return replace(answer if answer.outcome is Outcome.OK else members, facts=members.facts)
        if if_match is None:
            return answer
        tag = definition_tag((await self.read(Kind.AGGREGATE, [name])).get(name, {}))
        return replace(answer, outcome=Outcome.CHANGED, facts=(tag,) if tag else ())

    async def delete_aggregate(self, name: str, force: bool = False, if_match: IfMatch = None) -> ScriptResult:
        """Delete an aggregate. OK | UNKNOWN | IN_USE (it has hosts; facts: some of them) | CHANGED (facts: the tag).

        With `force` it is first declared without hosts. (declare.lua, membership.lua, undeclare.lua)
        """
        if not force and (members := await self.members(name)):
            return replace(
                await self._cell.answer("tick", (self._cell.keys.deadlines,)),
                outcome=Outcome.IN_USE,
                facts=tuple(members[:CHUNK]),
            )
        for _ in range(MAX_TRIES):
            answer = await self._empty_and_delete(name, if_match)
            if answer.outcome is not Outcome.CHANGED or if_match is not None:
                return answer
        raise StoreUnavailable(f"aggregate {name} changes faster than it can be declared: try again")

    async def _empty_and_delete(self, name: str, if_match: IfMatch) -> ScriptResult:
        """Delete an aggregate if it has not changed since it was read here; else CHANGED."""
        fields = (await self.read(Kind.AGGREGATE, [name])).get(name, {})
        tag = definition_tag(fields)
        if tag is None or not is_match(if_match, tag):
            return await self._undeclare(Kind.AGGREGATE, name, False, if_match)
        emptied = {field: value for field, value in fields.items() if is_definition(field)}
        emptied |= {HOSTS_DIGEST: digest("")}
        answer = await self._declare(Kind.AGGREGATE, name, emptied, (tag,))
        if answer.outcome is Outcome.CHANGED:
            return answer
        await self._set_members(name, frozenset(), emptied[HOSTS_DIGEST])
        return await self._undeclare(Kind.AGGREGATE, name, False, (str(definition_tag(emptied)),))

    async def put_group(self, group: ServerGroup, if_match: IfMatch = None) -> ScriptResult:
        """Declare a server group. OK | ALREADY_DONE | CHANGED | IN_USE (it has members: only max_per_host may change).

        IN_USE with facts: it was deleted by force, and these topologies do not count all of its members. (declare.lua)
        """
        return await self._declare(Kind.SERVER_GROUP, group.name, group_fields(group), if_match)

    async def delete_group(self, name: str, force: bool = False, if_match: IfMatch = None) -> ScriptResult:
        """Delete a server group. OK | UNKNOWN | IN_USE (it has members) | CHANGED. (undeclare.lua)"""
        return await self._undeclare(Kind.SERVER_GROUP, name, force, if_match)

    async def put_pool(self, pool: SharedPool, if_match: IfMatch = None) -> ScriptResult:
        """Declare a shared pool; its claimed amounts stay. OK | ALREADY_DONE | CHANGED. (declare.lua)"""
        return await self._declare(Kind.POOL, pool.name, pool_fields(pool), if_match)

    async def delete_pool(self, name: str, force: bool = False, if_match: IfMatch = None) -> ScriptResult:
        """Delete a shared pool. OK | UNKNOWN | IN_USE (some of it is claimed) | CHANGED. (undeclare.lua)"""
        return await self._undeclare(Kind.POOL, name, force, if_match)

    async def put_quota(self, quota: Quota, cells: Sequence[str] = (), if_match: IfMatch = None) -> ScriptResult:
        """Declare a quota; `cells`: those that share it, if several. OK | ALREADY_DONE | CHANGED. (declare.lua)"""
        return await self._declare(Kind.QUOTA, quota.project, quota_fields(quota, cells), if_match)

    async def delete_quota(self, project: str, if_match: IfMatch = None) -> ScriptResult:
        """Delete the quota of a project. OK | UNKNOWN | CHANGED. (undeclare.lua)"""
        return await self._undeclare(Kind.QUOTA, project, True, if_match)

    async def names(self, kind: Kind) -> list[str]:
        """Return the names of the declared objects of a kind, in order."""
        with self._cell.reading():
            return sorted(await self._cell.reader.smembers(self._place(kind)[1]))

    async def read(self, kind: Kind, names: Sequence[str]) -> dict[str, Fields]:
        """Return the hashes of some objects of a kind by name; missing ones are left out."""
        found: dict[str, Fields] = {}
        for chunk in chunks(names, OBJECTS_AT_ONCE):
            hashes = await self._cell.hashes([self._place(kind, name)[0] for name in chunk])
            found.update((name, fields) for name, fields in zip(chunk, hashes, strict=True) if fields)
        return found

    async def broken_groups(self) -> list[str]:
        """Return the server groups whose hard policy was broken when it was last looked at, in order."""
        names, found = await self.names(Kind.SERVER_GROUP), list[str]()
        for some in chunks(names) if names else ():
            with self._cell.reading():
                reads = [("HMGET", self._cell.keys.server_group(name), "broken") for name in some]
                marks = await exchange(self._cell.reader, reads)
            found += (name for name, [mark] in zip(some, marks, strict=True) if mark)
        return found

    async def members(self, aggregate: str) -> list[str]:
        """Return the hosts in an aggregate, in order."""
        found: list[str] = []
        for chunk in chunks(await self._hosts.names()):
            pipe = self._cell.reader.pipeline(transaction=False)
            for host in chunk:
                pipe.hget(self._cell.keys.host(host), f"aggregate.{aggregate}")
            with self._cell.reading():
                marks = await pipe.execute()
            found += (host for host, mark in zip(chunk, marks, strict=True) if mark == "1")
        return sorted(found)

    async def _declare(self, kind: Kind, name: str, fields: Fields, if_match: IfMatch) -> ScriptResult:
        head = (kind.value, name, as_argument(if_match))
        return await self._cell.answer("declare", self._place(kind, name), (*head, *flat(fields)))

    async def _undeclare(self, kind: Kind, name: str, force: bool, if_match: IfMatch) -> ScriptResult:
        arguments = (kind.value, name, int(force), as_argument(if_match))
        return await self._cell.answer("undeclare", self._place(kind, name), arguments)

    async def _set_members(self, aggregate: str, wanted: frozenset[str], hosts_digest: str) -> ScriptResult:
        """Make exactly these hosts the members. OK | ALREADY_DONE | STALE; facts: the hosts that are not known.

        `hosts_digest` is that of the declaration that has these hosts.
        """
        parts = list(chunks(sorted(wanted.union(await self._hosts.names()))))
        answers = []
        for number, chunk in enumerate(parts, start=1):
            keys = (self._cell.keys.aggregate(aggregate), *map(self._cell.keys.host, chunk))
            marks = flat((host, int(host in wanted)) for host in chunk)
            arguments = (aggregate, hosts_digest, int(number == len(parts)), *marks)
            answers.append(await self._cell.answer("membership", keys, arguments))
            if answers[-1].outcome is Outcome.STALE:
                return answers[-1]
        changed = any(one.outcome is Outcome.OK for one in answers)
        unknown = tuple(host for one in answers for host in one.facts)
        return replace(answers[-1], outcome=Outcome.OK if changed else Outcome.ALREADY_DONE, facts=unknown)

    def _place(self, kind: Kind, name: str = "") -> tuple[str, str]:
        """Return the key of an object, and the key of the set of names of its kind."""
        if kind is Kind.AGGREGATE:
            return self._cell.keys.aggregate(name), self._cell.keys.aggregates
        if kind is Kind.SERVER_GROUP:
            return self._cell.keys.server_group(name), self._cell.keys.server_groups
        if kind is Kind.QUOTA:
            return self._cell.keys.quota(name), self._cell.keys.quotas
        return self._cell.keys.pool(name), self._cell.keys.pools
