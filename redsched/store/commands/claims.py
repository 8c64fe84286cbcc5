"""Scripts about claims: claim, bind, void, accept, confirm, renew, fail, release, gone, work_ended, reconcile."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from redsched.errors import NotDurable, StoreUnavailable, Unavailable
from redsched.model import EndReason
from redsched.store.codec.claim_codec import ClaimWire, counted_by
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ClaimAnswer, ClaimCall, ReleaseMode, ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.base import MAX_TRIES, chunks
from redsched.store.commands.reads import Reads
from redsched.store.topology.connection import reading

MAX_REASON = 1000
"""Characters of a reason that are kept."""


class ClaimCalls(Reads):
    """One coroutine for each script whose subject is a claim."""

    async def claim(self, call: ClaimCall) -> ClaimAnswer:
        """Place every member on the first of its candidates that fits now, or none of them. (claim.lua, replace.lua)

        Either all members are new claims, or all are claims that are placed again.

        Returns when the claims are as durable as the settings ask. Raises NotDurable when that has not come about in
        time; claims that this call has made are ended then, and moves called off.
        """
        call_id = call.call_id or (secrets.token_hex(4) if self._runner.waits else "")
        wire = ClaimWire(self.keys, call, call_id)
        keys = (*wire.keys, *self._thing_keys(wire.things), *wire.last_keys)
        try:
            return wire.answer(await self._run(wire.script, keys, wire.arguments, durable=True))
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

    async def bind(self, claim_id: str, former: str, kept_ms: int) -> str:
        """Bind a caller's id to this cell unless it is bound to another than `former`; its cell now. (bind.lua)"""
        reply = await self._runner.run("bind", (self.keys.binding(claim_id),), (self.name, former, kept_ms))
        return str(reply[1])

    async def bound_to(self, claim_id: str) -> str:
        """The cell that a caller's id is bound to; '' for none."""
        with reading(self._url):
            return str(await self._outside.get(self.keys.binding(claim_id)) or "")

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
        return await self._answer("void", (self.keys.claim(claim_id),), (digest, int(unheard), token, end_reason.value))

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
        return await self._until_passed("release", (self.keys.claim(claim_id),), arguments, beside)

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
            keys = tuple(map(self.keys.claim, some))
            answer = await self._until_passed("reconcile", keys, (int(gang_done), *some), things)
            changed += int(answer.facts[0])
        return changed

    async def end_gang(self, gang_id: str) -> bool:
        """Give back the members that are left of a gang that has failed. (fail.lua)

        Return whether it had failed and each member was given back; otherwise it stays listed in `reconcile`.
        """
        members = await self.members_of_failed(gang_id)
        done = members is not None
        for claim in (await self.read_claims(members or ())).values():
            answer = await self.fail(
                claim.host, claim.id, claim.token, by_host=False, things=counted_by(claim), again=False
            )
            # STALE: it was resized since it was read.
            done = done and answer.outcome not in (Outcome.NOT_ATTESTED, Outcome.STALE)
        return done

    async def _about(
        self, script: str, host: str, claim_id: str, token: str, *arguments: str | int, things: Collection[str] = ()
    ) -> ScriptResult:
        """Run a script about one placement of a claim."""
        name = f"host:{host}"
        beside = (name, *(one for one in things if one != name))
        return await self._until_passed(
            script, (self.keys.claim(claim_id),), (host, claim_id, token, *arguments), beside
        )

    async def _until_passed(
        self, script: str, keys: Sequence[str], arguments: Sequence[str | int], things: Collection[str]
    ) -> ScriptResult:
        """Run a script, and again with the keys of the hosts and other things that it has named as missing."""
        beside = dict.fromkeys(things)
        for _ in range(MAX_TRIES):
            answer = await self._answer(script, (*self.keys.due, *keys, *self._thing_keys(beside)), arguments)
            if answer.outcome is not Outcome.RETRY:
                return answer
            beside |= dict.fromkeys(answer.facts)
        raise StoreUnavailable(f"{script}: what claims count in changes faster than it can be read: try again")
