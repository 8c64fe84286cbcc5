"""Scripts about hosts: report, attest, heartbeat, down, status, lost, forget; and about the cell: init, tick."""

from collections.abc import Sequence
from itertools import chain

from redsched.errors import StoreUnavailable
from redsched.model import AgentStamp, AtDeadline, HostReport, HostStatus, Token
from redsched.store.codec.fields import attribute_fields, host_fields
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import AttestAnswer, Clock, EndedPlacement, JournaledClaim, ReportAnswer, ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.base import MAX_TRIES
from redsched.store.commands.reads import Reads


def _stamp(stamp: AgentStamp | None) -> tuple[str, str, int]:
    return ("", "", 0) if stamp is None else (stamp.journal, stamp.nonce, stamp.number)


class HostCalls(Reads):
    """One coroutine for each script whose subject is a host or the cell."""

    async def init(self) -> ScriptResult:
        """Declare the cell new, so that it starts settled. OK, or ALREADY_DONE when it exists. (init.lua)"""
        return await self._answer("init")

    async def tick(self) -> Clock:
        """Let the fence look, and note the store's time. (tick.lua)"""
        reply = await self._run("tick", (self.keys.deadlines,))
        return Clock(epoch=reply[1], seq=int(reply[3]), now_ms=int(reply[2]), settled=bool(reply[4]))

    async def raise_epoch(self, above: str) -> ScriptResult:
        """Make sure that the present epoch is above one that an agent has left. OK | ALREADY_DONE. (raise.lua)"""
        Token.parse(f"{above}.0")
        return await self._answer("raise", (), (above,))

    async def report(self, report: HostReport, stamp: AgentStamp | None = None) -> ReportAnswer:
        """Replace all that the host's agent owns. OK | ALREADY_DONE | NOT_OWNER. (report.lua)"""
        own, facts = flat(host_fields(report)), flat(attribute_fields(report))
        own_keys = (self.keys.host(report.name), self.keys.attributes(report.name), self.keys.removed(report.name))
        keys = (*own_keys, self.keys.deadlines)
        head = (report.name, report.lease_s * 1000, *_stamp(stamp), len(own))
        reply = await self._run("report", keys, (*head, *own, *facts))
        return ReportAnswer(Outcome(reply[0]), reply[1], int(reply[2]), bool(reply[3]), int(reply[4] or 0))

    async def attest(
        self,
        host: str,
        epoch: str,
        stamp: AgentStamp | None = None,
        held: Sequence[JournaledClaim] = (),
        ended: Sequence[EndedPlacement] = (),
        lease_s: int = 120,
    ) -> AttestAnswer:
        """Tell the epoch ('' for whichever it is) all claims that the host knows of. (attest.lua)

        `ended` are those that the journal remembers as ended; `lease_s` runs for claims to be taken up again.
        """
        spoken = [_held_entry(one) for one in held]
        spoken += [(one.id, "ended", one.placed, one.token, one.end_reason, int(one.was_active)) for one in ended]
        things: set[str] = set()
        for _ in range(MAX_TRIES):
            named = {entry[0] for entry in spoken}
            entries = [*spoken, *((id_, "store") for id_ in await self.held_ids(host) if id_ not in named)]
            keys = [*self.keys.due, *self._host_keys(host), self.keys.draining]
            keys += [self.keys.claim(str(entry[0])) for entry in entries]
            head = (host, epoch, *_stamp(stamp), lease_s * 1000, len(entries))
            reply = await self._run(
                "attest", (*keys, *self._thing_keys(things)), (*head, *chain.from_iterable(entries))
            )
            if reply[0] != Outcome.RETRY:
                return AttestAnswer(Outcome(reply[0]), reply[1], int(reply[2]), tuple(reply[3:]))
            things.update(reply[3:])
        raise StoreUnavailable(f"the claims of {host} change faster than they can be read: attest again")

    async def heartbeat(self, host: str, lease_s: int, stamp: AgentStamp | None = None) -> ScriptResult:
        """The host lives for another lease. OK | NOT_ATTESTED | UNKNOWN | NOT_OWNER. (heartbeat.lua)"""
        journal, nonce, _ = _stamp(stamp)
        return await self._answer(
            "heartbeat", (self.keys.host(host), self.keys.deadlines), (host, lease_s * 1000, journal, nonce)
        )

    async def mark_down(self, hosts: Sequence[str]) -> int:
        """Mark those of the hosts whose lease has lapsed; the number marked. (down.lua)"""
        reply = await self._run("down", [self.keys.host(host) for host in hosts], hosts)
        return int(reply[3])

    async def set_status(
        self,
        host: str,
        status: HostStatus,
        move: bool = False,
        deadline_s: int = 0,
        then: AtDeadline = AtDeadline.KEEP,
    ) -> ScriptResult:
        """Set a host's status; with `move` its claims are to be placed elsewhere.

        OK | ALREADY_DONE | UNKNOWN. (status.lua) `deadline_s`: how long they are moved (0: until it is enabled);
        `then`: what becomes of the rest.
        """
        deadline = (deadline_s * 1000, then.value) if deadline_s else ("", "")
        keys = (self.keys.host(host), self.keys.draining)
        return await self._answer("status", keys, (host, status.value, int(move), *deadline))

    async def write_off(self, host: str, evacuate: bool = False, force: bool = False) -> ScriptResult:
        """Write a host off; with `evacuate`, its claims move. OK | ALREADY_DONE | UNKNOWN | ALIVE. (lost.lua)"""
        keys = (self.keys.host(host), self.keys.draining)
        return await self._answer("lost", keys, (host, int(evacuate), int(force)))

    async def forget(self, host: str, force: bool = False) -> ScriptResult:
        """Remove a host. OK | UNKNOWN | IN_USE. With `force` its claims end with it. (forget.lua)"""
        things = set[str]()
        for _ in range(MAX_TRIES):
            ids = sorted(await self.held_ids(host))
            keys = (
                *self.keys.due,
                self.keys.host(host),
                self.keys.claims(host),
                self.keys.inbox(host),
                self.keys.attributes(host),
                self.keys.draining,
                self.keys.removed(host),
                *map(self.keys.claim, ids),
                *self._thing_keys(things),
            )
            answer = await self._answer("forget", keys, (host, int(force), *ids))
            if answer.outcome is not Outcome.RETRY:
                return answer
            things.update(answer.facts)
        raise StoreUnavailable(f"the claims of {host} change faster than they can be read: try again")


def _held_entry(claim: JournaledClaim) -> tuple[str | int, ...]:
    head = (claim.id, "held", claim.placed, claim.token, claim.root, claim.state.value, int(claim.was_active))
    return (*head, len(claim.record), *flat(claim.record))
