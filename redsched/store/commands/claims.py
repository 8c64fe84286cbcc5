"""Scripts and reads whose subject is a claim."""

import secrets
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from redsched.errors import NotDurable, StoreUnavailable, Unavailable
from redsched.model import Amounts, Claim, ClaimStatus, EndReason, Reason
from redsched.model.validation import check_amount, check_name, check_slot
from redsched.pacing import Spread, paced
from redsched.store.codec.claim_codec import ClaimWire, drawn_on
from redsched.store.codec.fields import claim_from, reason_from
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ClaimAnswer, ClaimCall, ReleaseMode, ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CHUNK, CLAIMS_AT_ONCE, MAX_TRIES, CellClient, chunks
from redsched.store.commands.hosts import HostCommands

HOSTS_AT_ONCE = 50
"""Hosts whose ids of claims are read in one go."""
MAX_REASON = 1000
"""Characters of a reason that are kept."""
LOCAL = "local"
"""The digest of a local claim. No request has it: theirs are hexadecimal, so an id of both kinds is a CONFLICT."""


class ClaimCommands:
    """One coroutine for each script whose subject is a claim."""

    def __init__(self, cell: CellClient, hosts: HostCommands) -> None:
        self._cell = cell
        self._hosts = hosts

    async def read(self, ids: Iterable[str]) -> dict[str, Claim]:
        """The claims, ended ones that are still remembered included; ids that are not known are left out."""
        found: dict[str, Claim] = {}
        wanted = list(ids)
        for some in chunks(wanted, CLAIMS_AT_ONCE) if wanted else ():
            found |= await self._read_claims(some)
        return found

    async def _read_claims(self, ids: Sequence[str]) -> dict[str, Claim]:
        hashes = await self._cell.hashes([self._cell.keys.claim(claim_id) for claim_id in ids])
        pairs = zip(ids, hashes, strict=True)
        return {one: claim_from(self._cell.name, one, fields) async for one, fields in paced(pairs) if fields}

    async def reasons(self, ids: Iterable[str]) -> dict[str, Reason]:
        """Why claims failed, expired or lost their work; those of which nothing is kept are left out."""
        wanted = list(ids)
        hashes = await self._cell.hashes([self._cell.keys.reason(claim_id) for claim_id in wanted])
        pairs = zip(wanted, hashes, strict=True)
        return {claim_id: reason_from(fields) for claim_id, fields in pairs if fields}

    async def living_on(self, hosts: Sequence[str]) -> AsyncIterator[list[Claim]]:
        """Yield the claims on these hosts that have not ended, by pages of hosts and CLAIMS_AT_ONCE claims at most.

        Each once, also one that moves and is on two of the hosts.
        """
        moving: set[str] = set()
        for some in chunks(hosts, HOSTS_AT_ONCE):
            ids = list(chain.from_iterable(await self._hosts.claim_ids_of(some)))
            for part in chunks(ids, CLAIMS_AT_ONCE):
                claims = (await self.read(part)).values()
                page = [one for one in claims if one.state is not ClaimStatus.ENDED and one.id not in moving]
                moving.update(one.id for one in page if len(one.placements) > 1)
                yield page

    async def shelved_ids(self) -> Spread[bool]:
        """Return the ids of the claims that are shelved, or are being shelved."""
        found = Spread[bool]()
        with self._cell.reading():
            async for claim_id in self._cell.reader.sscan_iter(self._cell.keys.shelved, count=CHUNK):
                found[claim_id] = True
        return found

    async def place(self, call: ClaimCall) -> ClaimAnswer:
        """Place every member on the first of its candidates that fits now, or none of them. (claim.lua, replace.lua)

        Either all members are new claims, or all are claims that are placed again.

        Returns when the claims are as durable as the settings ask. Raises NotDurable when that has not come about in
        time; claims that this call has made are ended then, and moves called off.
        """
        call_id = call.call_id or (secrets.token_hex(4) if self._cell.scripts.waits else "")
        wire = ClaimWire(self._cell.keys, call, call_id)
        keys = (*wire.keys, *self._cell.keys.of_things(wire.things), *wire.last_keys)
        try:
            return wire.answer(await self._cell.run(wire.script, keys, wire.arguments, durable=True))
        except NotDurable as error:
            answer = wire.answer(error.reply)
            if answer.outcome is Outcome.OK:
                await self._undo(call, answer, call_id)
            if answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE):
                raise
            return answer

    async def _undo(self, call: ClaimCall, answer: ClaimAnswer, call_id: str) -> None:
        with suppress(Unavailable):  # their leases end them then
            for member, placed in zip(call.members, answer.placed, strict=True):
                # It may arrive late. Whoever was answered with the claim since, by the same id, is to keep it. A move
                # is called off; what was pending or shelved comes up all the same: a release would end the claim.
                if member.again is None:
                    await self.release(placed.host, member.id, placed.token, call_id=call_id)
                elif member.again.end_reason is EndReason.MOVED:
                    await self.release(placed.host, member.id, placed.token, ReleaseMode.UNLESS_ACTIVE)

    async def void(
        self,
        claim_id: str,
        digest: str,
        unheard: bool = False,
        token: str = "",
        end_reason: EndReason = EndReason.RELEASED,
    ) -> ScriptResult:
        """Close this cell to an id that is not known here.

        OK | ALREADY_DONE | CONFLICT (it has an outcome here). (void.lua) `unheard`: only where a host that has not been
        heard in this epoch might bring it back. `token`: to what was placed before that; '' for now. Facts: the token
        up to which it is closed.
        """
        return await self._cell.answer(
            "void", (self._cell.keys.claim(claim_id),), (digest, int(unheard), token, end_reason.value)
        )

    async def accept(self, host: str, claim_id: str, token: str, lease_s: int, entry_id: str = "") -> ScriptResult:
        """The host takes it up.

        OK | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED; facts: state. (accept.lua)
        """
        return await self._about("accept", host, claim_id, token, lease_s * 1000, entry_id)

    async def confirm(
        self, host: str, claim_id: str, token: str, things: Collection[str] = (), epoch: str = ""
    ) -> ScriptResult:
        """The work runs. OK | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED. (confirm.lua)

        ENDING also where it is not wanted any more, or its gang has failed meanwhile. `things` as in `fail`. `epoch`:
        that which the host has attested to, '' for any; NOT_ATTESTED where the cell is in another one.
        """
        return await self._about("confirm", host, claim_id, token, epoch, things=things)

    async def renew(self, host: str, claim_id: str, token: str, lease_s: int) -> ScriptResult:
        """A fresh lease.

        OK (facts: expires_at_ms) | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED. (renew.lua)
        """
        return await self._about("renew", host, claim_id, token, lease_s * 1000)

    async def fail(
        self,
        host: str,
        claim_id: str,
        token: str,
        by_host: bool,
        things: Collection[str] = (),
        again: bool | None = None,
        reason: str = "",
    ) -> ScriptResult:
        """The work could not be started.

        OK | ENDING | ALREADY_DONE | ENDED | STALE | UNKNOWN | NOT_ATTESTED; facts: state. (fail.lua) `again`: whether
        it is to be placed again; None: as its request says. `things`: what it counts in beside its host (see
        `drawn_on`), where the caller knows: it saves a second call. `reason`: why, in words.
        """
        retry = "" if again is None else int(again)
        beside = (f"reason:{claim_id}", *things)
        arguments = (int(by_host), retry, reason[:MAX_REASON])
        return await self._about("fail", host, claim_id, token, *arguments, things=beside)

    async def put_off(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """Look later for a place of a pending claim: there is none now.

        OK | STALE | UNKNOWN | NOT_ATTESTED. (fail.lua) `token`: of the placement that has
        failed, by which it waits. `reason`: why there is none, in words.
        """
        things = (f"reason:{claim_id}",)
        return await self._about("fail", host, claim_id, token, 0, "later", reason[:MAX_REASON], things=things)

    async def work_ended(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """The host's word that its work has ended, though the claim goes on. (work_ended.lua)

        OK | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED.
        """
        things = (f"reason:{claim_id}",)
        return await self._about("work_ended", host, claim_id, token, reason[:MAX_REASON], things=things)

    async def release(
        self,
        host: str,
        claim_id: str,
        token: str = "",
        how: ReleaseMode = ReleaseMode.ASK,
        things: Collection[str] = (),
        call_id: str = "",
        end_reason: EndReason = EndReason.RELEASED,
        closed: str = "",
        reason: str = "",
    ) -> ScriptResult:
        """Give a claim back, wherever it is.

        OK | ENDING | ALREADY_DONE | ENDED | ACTIVE | STALE | UNKNOWN. (release.lua) `host` ('' if it is not known) and
        `things` save a second call. `token`: '' for any; that of a placement which the claim is being moved to calls
        off only the move. `end_reason`: RELEASED, FAILED, or SHELVED, to have it again later (ENDED: it ended
        otherwise). `call_id`: only what the claim call of this mark was the last to be answered with. `closed`: repeat
        an earlier closing. `reason`: why, in words. Facts: the token up to which it is closed. ACTIVE only with
        UNLESS_ACTIVE: nothing was written.
        """
        hosts, reasons = [f"host:{host}"] * bool(host), [f"reason:{claim_id}"] * bool(reason)
        beside = (*hosts, *reasons, *things)
        arguments = (claim_id, token, end_reason.value, how.value, call_id, closed, reason[:MAX_REASON])
        return await self._until_passed("release", (self._cell.keys.claim(claim_id),), arguments, beside)

    async def shelve(self, host: str, claim_id: str, token: str, things: Collection[str] = ()) -> ScriptResult:
        """Give a claim back, to have it again later: `release` with that reason."""
        return await self.release(host, claim_id, token, things=things, end_reason=EndReason.SHELVED)

    async def gone(
        self,
        host: str,
        claim_id: str,
        token: str,
        end_reason: EndReason,
        external: Mapping[str, int],
        entry_id: str = "",
        things: Collection[str] = (),
        reason: str = "",
    ) -> ScriptResult:
        """The host's word that the work has ended, with its new external usage.

        OK | ALREADY_DONE | STALE | UNKNOWN | NOT_ATTESTED. `things` and `reason` as in `fail`. Facts, of the first two:
        why it ended. (gone.lua)
        """
        arguments = (end_reason.value, entry_id, reason[:MAX_REASON], *flat(external))
        beside = (f"reason:{claim_id}", *things)
        return await self._about("gone", host, claim_id, token, *arguments, things=beside)

    async def reconcile(self, ids: Collection[str], things: Collection[str] = (), gang_done: bool = False) -> int:
        """Do whatever is due about claims; the number changed. (reconcile.lua)

        `things`: what they count in, their hosts too (see `counted_by`). `gang_done`: `end_gang` has returned True for
        their gangs.
        """
        changed = 0
        for some in chunks(list(ids)):
            keys = tuple(map(self._cell.keys.claim, some))
            answer = await self._until_passed("reconcile", keys, (int(gang_done), *some), things)
            changed += int(answer.facts[0])
        return changed

    async def _about(
        self, script: str, host: str, claim_id: str, token: str, *arguments: str | int, things: Collection[str] = ()
    ) -> ScriptResult:
        """Run a script about one placement of a claim."""
        name = f"host:{host}"
        beside = (name, *(one for one in things if one != name))
        return await self._until_passed(
            script, (self._cell.keys.claim(claim_id),), (host, claim_id, token, *arguments), beside
        )

    async def _until_passed(
        self, script: str, keys: Sequence[str], arguments: Sequence[str | int], things: Collection[str]
    ) -> ScriptResult:
        """Run a script, and again with the keys of the hosts and other things that it has named as missing."""
        beside = dict.fromkeys(things)
        for _ in range(MAX_TRIES):
            answer = await self._cell.answer(
                script, (*self._cell.keys.due, *keys, *self._cell.keys.of_things(beside)), arguments
            )
            if answer.outcome is not Outcome.RETRY:
                return answer
            beside |= dict.fromkeys(answer.facts)
        raise StoreUnavailable(f"{script}: what claims count in changes faster than it can be read: try again")

    async def resize(
        self,
        host: str,
        claim_id: str,
        token: str,
        amounts: Amounts,
        things: Collection[str] = (),
        limited: bool = False,
    ) -> ScriptResult:
        """The owner wants other amounts: all of them, by slot. (resize.lua)

        OK | ALREADY_DONE (this token was resized to these amounts; facts of both: token, state) | FULL (facts: slot) |
        MOVING (it is being moved) | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED | OVER_QUOTA (facts: see
        `exceeded`) | UNSHARED. `things` as in `fail`, of what it holds and of what it is to hold; `limited` as in a
        ClaimCall.
        """
        _check(amounts)
        return await self._about("resize", host, claim_id, token, int(limited), *flat(amounts), things=things)

    async def resized(
        self, host: str, claim_id: str, token: str, amounts: Amounts, things: Collection[str] = ()
    ) -> ScriptResult:
        """The host's word that the work has these amounts now, the wanted or the old ones. (resized.lua)

        OK | ALREADY_DONE (no resize is under way) | CONFLICT (more than the claim holds) | ENDING | ENDED | STALE |
        UNKNOWN | NOT_ATTESTED. `things` as in `fail`.
        """
        _check(amounts)
        return await self._about("resized", host, claim_id, token, *flat(amounts), things=things)

    async def report_local(
        self, host: str, claim_id: str, amounts: Amounts, project: str = "", consumer: str = "", token: str = ""
    ) -> ScriptResult:
        """The host's word that it runs work which nobody claimed, or that such work has other amounts. (local.lua)

        `token` is that of the claim's last placement that the host knows of, '' for none. OK | ALREADY_DONE (facts of
        both: token, placed) | STALE (the store knows a later placement; facts: its token, '' for a claim that has
        ended) | CONFLICT (the id is another claim's) | NOT_ATTESTED.
        """
        check_name("claim", claim_id)
        _check(amounts)
        things = drawn_on("", amounts, project=project)
        return await self._about("local", host, claim_id, token, project, consumer, *flat(amounts), things=things)


def _check(amounts: Amounts) -> None:
    for slot, amount in amounts.items():
        check_amount(check_slot(slot), amount, minimum=1)
