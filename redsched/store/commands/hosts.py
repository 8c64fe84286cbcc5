"""Scripts and reads about hosts: report, session, status, inbox."""

from collections.abc import Mapping, Sequence
from itertools import chain

from redsched.errors import StoreUnavailable
from redsched.model import AgentStamp, AtDeadline, HostReport, HostStatus
from redsched.model.conditions import IfMatch
from redsched.model.validation import parse_int
from redsched.store.client.reads import exchange
from redsched.store.codec.fields import DEVICE, DRAINING_FIELDS, attribute_fields, draining_of, host_fields
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import (
    AttestReply,
    EndedPlacement,
    FencingBegun,
    HostHashes,
    InboxEntry,
    JournaledClaim,
    ReportReply,
    ScriptResult,
)
from redsched.store.codec.tags import as_argument
from redsched.store.codec.wire import flat, mapping_of
from redsched.store.commands.base import MAX_TRIES, CellClient
from redsched.store.commands.feed import FEED_START
from redsched.store.commands.homes import HomeCommands


def _stamp(stamp: AgentStamp | None) -> tuple[str, str, int]:
    return ("", "", 0) if stamp is None else (stamp.journal, stamp.nonce, stamp.number)


class HostCommands:
    """One coroutine for each script about hosts."""

    def __init__(self, cell: CellClient, homes: HomeCommands) -> None:
        self._cell, self._homes = cell, homes

    async def names(self) -> list[str]:
        """Return the names of all hosts."""
        with self._cell.reading():
            return list(await self._cell.reader.zrange(self._cell.keys.hosts, 0, -1))

    async def read(self, names: Sequence[str]) -> list[HostHashes]:
        """Return hosts with all their fields, read in one pipeline. Pass some hundreds of names at most."""
        keys = self._cell.keys
        hashes = await self._cell.hashes([key for name in names for key in (keys.host(name), keys.attributes(name))])
        return [
            HostHashes(name, {**host, **attributes} if host else {})
            for name, host, attributes in zip(names, hashes[::2], hashes[1::2], strict=True)
        ]

    async def fields_of(self, names: Sequence[str], fields: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return some fields of each of these hosts, by name, read in one pipeline. Absent fields are left out."""
        with self._cell.reading():
            pipe = self._cell.reader.pipeline(transaction=False)
            for name in names:
                pipe.hmget(self._cell.keys.host(name), fields)
            found = await pipe.execute() if names else []
        pairs = (zip(fields, values, strict=True) for values in found)
        known = ({field: value for field, value in one if value is not None} for one in pairs)
        return dict(zip(names, known, strict=True))

    async def devices(self, name: str) -> dict[str, str]:
        """Return the devices of a host's pools, by the names of the pools."""
        [attributes] = await self._cell.hashes([self._cell.keys.attributes(name)])
        return {field[len(DEVICE) :]: value for field, value in attributes.items() if field.startswith(DEVICE)}

    async def flat(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return by name those of the hosts that exist, each with the fields of both hashes: field, value ...

        All are read in one pipeline. Pass some hundreds of names at most.
        """
        keys = self._cell.keys
        reads = [("HGETALL", key) for name in names for key in (keys.host(name), keys.attributes(name))]
        with self._cell.reading():
            replies = await exchange(self._cell.reader, reads) if names else []
        pairs = zip(names, replies[::2], replies[1::2], strict=True)
        return {name: host + attributes for name, host, attributes in pairs if host}

    async def claim_ids(self, host: str) -> set[str]:
        """Return the ids of the claims on a host."""
        with self._cell.reading():
            return set(await self._cell.reader.smembers(self._cell.keys.claims(host)))

    async def claim_ids_of(self, hosts: Sequence[str]) -> list[set[str]]:
        """Return the ids of the claims on each of some hosts, read in one pipeline."""
        if not hosts:
            return []
        reads = [("SMEMBERS", self._cell.keys.claims(host)) for host in hosts]
        with self._cell.reading():
            return [set(ids) for ids in await exchange(self._cell.reader, reads)]

    async def inbox(self, host: str, after: str = FEED_START) -> list[InboxEntry]:
        """Return the notifications in a host's inbox after entry `after`."""
        return (await self.inboxes([host], after))[0]

    async def inboxes(self, hosts: Sequence[str], after: str = FEED_START) -> list[list[InboxEntry]]:
        """Return the notifications in some hosts' inboxes. (inbox.lua)

        They are read over the connection that also carries the hosts' reports and confirmations.
        """
        if not hosts:
            return []
        reply = await self._cell.scripts.run("inbox", [self._cell.keys.inbox(host) for host in hosts], (after,))
        return [[_inbox_entry(entry_id, mapping_of(values)) for entry_id, values in entries] for entries in reply[1:]]

    async def draining(self, now_ms: int, epoch: str) -> dict[str, str]:
        """Return the hosts that their claims must leave, and how they leave, as returned by `draining_of`."""
        with self._cell.reading():
            names = sorted(await self._cell.reader.smembers(self._cell.keys.draining))
            pipe = self._cell.reader.pipeline(transaction=False)
            for name in names:
                pipe.hmget(self._cell.keys.host(name), DRAINING_FIELDS)
            found = await pipe.execute() if names else []
        hows = (draining_of(dict(zip(DRAINING_FIELDS, values, strict=True)), now_ms, epoch) for values in found)
        return {name: how for name, how in zip(names, hows, strict=True) if how}

    async def lapsed(self, since_ms: int, now_ms: int, offset: int, most: int) -> list[str]:
        """Return the hosts whose lease ends between two times (Unix, ms, inclusive), oldest first; -1: all."""
        with self._cell.reading():
            return list(
                await self._cell.reader.zrange(
                    self._cell.keys.hosts, str(since_ms), str(now_ms), byscore=True, offset=offset, num=most
                )
            )

    async def next_lease(self, now_ms: int) -> tuple[int, int] | None:
        """Return when the live host whose lease ends next last renewed it (Unix, ms), and the lease in ms.

        None if no lease ends after `now_ms`.
        """
        with self._cell.reading():
            first = await self._cell.reader.zrange(
                self._cell.keys.hosts, f"({now_ms}", "+inf", byscore=True, offset=0, num=1, withscores=True
            )
            if not first:
                return None
            host, until_ms = first[0]
            [lease_ms] = await self._cell.reader.hmget(self._cell.keys.host(host), ["lease_ms"])
        lease = parse_int(lease_ms or "", 0)
        return int(until_ms) - lease, lease

    async def report(self, report: HostReport, stamp: AgentStamp | None = None) -> ReportReply:
        """Replace all fields that the host's agent owns. OK | ALREADY_DONE | NOT_OWNER. (report.lua)

        If the zone or a label changes, the script is run again with the claims of the host and then their groups, which
        it counts anew. Raises ClaimState if another cell has a host with this name.
        """
        await self._homes.take(report.name)
        told = {"agent.version": stamp.version} if stamp is not None and stamp.version else {}
        own, facts = flat(host_fields(report) | told), flat(attribute_fields(report))
        own_keys = (
            self._cell.keys.host(report.name),
            self._cell.keys.attributes(report.name),
            self._cell.keys.removed(report.name),
        )
        keys = (*own_keys, self._cell.keys.deadlines, self._cell.keys.expected, self._cell.keys.claims(report.name))
        joins = HostStatus.ENABLED if self._cell.scripts.enables_new_hosts else HostStatus.DISABLED
        head = (report.name, report.lease_s * 1000, *_stamp(stamp), joins.value, len(own))
        counting = dict[str, None]()
        for _ in range(MAX_TRIES):
            counted = self._cell.keys.object_keys(counting)
            reply = await self._cell.run("report", (*keys, *counted), (*head, *own, *facts))
            if reply[0] != Outcome.RETRY:
                return ReportReply(Outcome(reply[0]), reply[1], int(reply[2]), bool(reply[3]), int(reply[4] or 0))
            counting.update(dict.fromkeys(reply[3:]))
        raise StoreUnavailable(f"the claims of {report.name} change faster than they can be read: report again")

    async def attest(
        self,
        host: str,
        epoch: str,
        stamp: AgentStamp | None = None,
        held: Sequence[JournaledClaim] = (),
        ended: Sequence[EndedPlacement] = (),
        lease_s: int = 120,
    ) -> AttestReply:
        """Attest to an epoch ('': the current one) with all claims that the host knows. (attest.lua)

        `ended` are those that the journal remembers as ended; `lease_s` is the lease of claims to be accepted again.
        Raises ClaimState if another cell has a host with this name.
        """
        await self._homes.take(host)
        placements = [_held_entry(one) for one in held]
        placements += [_ended_entry(one) for one in ended]
        named = {entry[0] for entry in placements}
        # Claims that only the store has are read if the script finds any: most hosts have none.
        of_store, objects = set[str](), set[str]()
        for _ in range(MAX_TRIES):
            entries = [*placements, *((id_, "store") for id_ in of_store)]
            keys = [*self._cell.keys.due, *self._cell.keys.of_host(host), self._cell.keys.draining]
            keys.append(self._cell.keys.attributes(host))
            keys += [self._cell.keys.claim(str(entry[0])) for entry in entries]
            head = (host, epoch, *_stamp(stamp), lease_s * 1000, len(entries))
            reply = await self._cell.run(
                "attest", (*keys, *self._cell.keys.object_keys(objects)), (*head, *chain.from_iterable(entries))
            )
            if reply[0] != Outcome.RETRY:
                return AttestReply(Outcome(reply[0]), reply[1], int(reply[2]), tuple(reply[3:]))
            objects.update(reply[3:])
            of_store = await self.claim_ids(host) - named
        raise StoreUnavailable(f"the claims of {host} change faster than they can be read: attest again")

    async def heartbeat(self, host: str, lease_s: int, stamp: AgentStamp | None = None) -> ScriptResult:
        """Renew the host's lease. OK | NOT_ATTESTED | UNKNOWN (report first) | NOT_OWNER. (heartbeat.lua)"""
        journal, nonce, _ = _stamp(stamp)
        return await self._cell.answer(
            "heartbeat", (self._cell.keys.host(host), self._cell.keys.deadlines), (host, lease_s * 1000, journal, nonce)
        )

    async def mark_down(self, hosts: Sequence[str]) -> int:
        """Mark as down those of the hosts whose lease has lapsed; return the number marked. (down.lua)"""
        reply = await self._cell.run("down", [self._cell.keys.host(host) for host in hosts], hosts)
        return int(reply[3])

    async def set_status(
        self,
        host: str,
        status: HostStatus,
        move: bool = False,
        deadline_s: int = 0,
        then: AtDeadline = AtDeadline.KEEP,
        if_match: IfMatch = None,
        reason: str = "",
        ahead: bool = False,
    ) -> ScriptResult:
        """Set a host's status; with `move` its claims are placed elsewhere. (status.lua)

        With `ahead`, declare that of a host that is not known yet; to enable one withdraws it.
        OK | ALREADY_DONE | UNKNOWN | CHANGED (facts: the tag). `deadline_s`: how long claims are moved (0: until the
        host is enabled); `then`: what happens to the rest. `reason`: why; '' for the present one.
        """
        deadline = (deadline_s * 1000, then.value) if deadline_s else ("", "")
        keys = (self._cell.keys.host(host), self._cell.keys.draining, self._cell.keys.expected)
        return await self._cell.answer(
            "status", keys, (host, status.value, int(move), *deadline, reason, as_argument(if_match), int(ahead))
        )

    async def expected(self) -> dict[str, tuple[str, str]]:
        """Return the hosts whose status was declared before their first report: by name, the status and the reason."""
        with self._cell.reading():
            found = await self._cell.reader.hgetall(self._cell.keys.expected)
        return {name: text.partition(" ")[::2] for name, text in sorted(found.items())}

    async def write_off(
        self,
        host: str,
        evacuate: bool = False,
        force: bool = False,
        if_match: IfMatch = None,
        fenced: FencingBegun | None = None,
        reason: str = "",
    ) -> ScriptResult:
        """Write a host off; with `evacuate`, its claims are placed elsewhere. (lost.lua)

        `fenced`: a fence command has succeeded that was begun then; only if the host was not heard of since. `reason`:
        why; '' for the present one, or that of a fenced host.
        OK | ALREADY_DONE | UNKNOWN | ALIVE | CHANGED (facts: the tag) | WRONG_EPOCH.
        """
        proof = ("", "") if fenced is None else (fenced.epoch, fenced.lease_ms)
        keys = (self._cell.keys.host(host), self._cell.keys.draining)
        arguments = (host, int(evacuate), int(force), as_argument(if_match), *proof, reason)
        return await self._cell.answer("lost", keys, arguments)

    async def forget(self, host: str, force: bool = False, if_match: IfMatch = None) -> ScriptResult:
        """Remove a host, which frees its name for other cells; with `force` its claims end with it. (forget.lua)

        Withdraw what was declared for one that is not known.
        OK | UNKNOWN | IN_USE | ALIVE (facts: the rest of its lease, ms) | CHANGED (facts: the tag).
        """
        objects = set[str]()
        for _ in range(MAX_TRIES):
            ids = sorted(await self.claim_ids(host))
            keys = (
                *self._cell.keys.due,
                self._cell.keys.host(host),
                self._cell.keys.claims(host),
                self._cell.keys.inbox(host),
                self._cell.keys.attributes(host),
                self._cell.keys.draining,
                self._cell.keys.removed(host),
                self._cell.keys.expected,
                *map(self._cell.keys.claim, ids),
                *self._cell.keys.object_keys(objects),
            )
            answer = await self._cell.answer("forget", keys, (host, int(force), as_argument(if_match), *ids))
            if answer.outcome in (Outcome.OK, Outcome.UNKNOWN):
                await self._homes.free(host)
            if answer.outcome is not Outcome.RETRY:
                return answer
            objects.update(answer.facts)
        raise StoreUnavailable(f"the claims of {host} change faster than they can be read: try again")


def _inbox_entry(entry_id: str, fields: Mapping[str, str]) -> InboxEntry:
    caused_by = (fields.get("actor", ""), fields.get("request_id", ""))
    number, epoch, op = int(fields["number"]), fields["epoch"], fields["op"]
    return InboxEntry(entry_id, number, epoch, op, fields["claim"], fields["token"], *caused_by)


def _held_entry(claim: JournaledClaim) -> tuple[str | int, ...]:
    placed = claim.placed or claim.token
    head = (claim.id, "held", placed, claim.token, claim.root or placed, claim.state.value, int(claim.was_active))
    return (*head, len(claim.record), *flat(claim.record))


def _ended_entry(one: EndedPlacement) -> tuple[str | int, ...]:
    ago_ms = "" if one.ended_ago_ms is None else one.ended_ago_ms
    return (one.id, "ended", one.placed or one.token, one.token, one.end_reason, int(one.was_active), ago_ms)
