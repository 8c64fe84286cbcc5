"""Scripts about claims: claim, bind, void, accept, confirm, renew, fail, release, shelve, gone, work_ended, expire."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from redsched.errors import NotDurable, StoreUnavailable, Unavailable
from redsched.model import Why
from redsched.store.answers import Answer, ClaimAnswer, ClaimCall, Giving
from redsched.store.base import MOST_TRIES, flat
from redsched.store.claim_wire import ClaimWire
from redsched.store.outcomes import Outcome
from redsched.store.reads import Reads

MOST_REASON = 1000
"""Characters of a reason that are kept."""


class ClaimCalls(Reads):
    """One coroutine for each script whose subject is a claim."""

    async def claim(self, call: ClaimCall) -> ClaimAnswer:
        """Place every member on the first of its candidates that fits now, or none of them. (claim.lua)

        Returns when the claims are as durable as the settings ask. Raises NotDurable when that has not come about in
        time; claims that this call has made are ended then.
        """
        mark = call.mark or (secrets.token_hex(4) if self._runner.waits else "")
        wire = ClaimWire(self.keys, call, mark)
        keys = (*wire.keys, *self._thing_keys(wire.things), *wire.last_keys)
        try:
            return wire.answer(await self._run("claim", keys, wire.arguments, durable=True))
        except NotDurable as error:
            answer = wire.answer(error.reply)
            if answer.outcome is Outcome.OK:
                await self._undo(call, answer, mark)
            if answer.outcome in (Outcome.OK, Outcome.SAME):
                raise
            return answer

    async def _undo(self, call: ClaimCall, answer: ClaimAnswer, mark: str) -> None:
        with suppress(Unavailable):  # their leases end them then
            for member, placed in zip(call.members, answer.placed, strict=True):
                # It may arrive late. Whoever was told of the claim since, by the same id, is to keep it; and what has
                # become active in the place of another claim is all that there is of the work by now.
                how = Giving.UNLESS_ACTIVE if member.former else Giving.ASK
                await self.release(placed.host, member.id, placed.token, how, mark=mark)

    async def bind(self, claim_id: str, former: str, kept_ms: int) -> str:
        """Bind a caller's id to this cell unless it is bound to another than `former`; its cell now. (bind.lua)"""
        reply = await self._runner.run("bind", (self.keys.binding(claim_id),), (self.name, former, kept_ms))
        return str(reply[1])

    async def void(self, claim_id: str, digest: str, unheard: bool = False, token: str = "") -> Answer:
        """Close this cell to an id that is not known here. OK | SAME | CONFLICT (it has an outcome here). (void.lua)

        `unheard`: only where a host that has not been heard in this epoch might bring it back. `token`: to what was
        placed before that; '' for now.
        """
        return await self._answer("void", (self.keys.claim(claim_id),), (digest, int(unheard), token))

    async def accept(self, host: str, claim_id: str, token: str, lease_s: int, entry_id: str = "") -> Answer:
        """The host takes it up. OK | SAME | ENDING | GONE | STALE | UNKNOWN | ATTEST; facts: state. (accept.lua)"""
        return await self._about("accept", host, claim_id, token, lease_s * 1000, entry_id)

    async def confirm(self, host: str, claim_id: str, token: str, things: Collection[str] = ()) -> Answer:
        """The work runs. OK | SAME | ENDING | GONE | STALE | UNKNOWN | ATTEST. (confirm.lua)

        ENDING also where its gang has failed meanwhile. `things` as in `fail`.
        """
        return await self._about("confirm", host, claim_id, token, things=things)

    async def renew(self, host: str, claim_id: str, token: str, lease_s: int) -> Answer:
        """A fresh lease. OK (facts: expires_at_ms) | SAME | ENDING | GONE | STALE | UNKNOWN | ATTEST. (renew.lua)"""
        return await self._about("renew", host, claim_id, token, lease_s * 1000)

    async def fail(
        self, host: str, claim_id: str, token: str, by_host: bool, things: Collection[str] = (), reason: str = ""
    ) -> Answer:
        """The work could not be started. OK | ENDING | SAME | GONE | STALE | UNKNOWN | ATTEST. (fail.lua)

        `things`: what it counts in beside its host (see `drawn_on`), where the caller knows: it saves a second call.
        `reason`: why, in words.
        """
        beside, said = (self.keys.reason(claim_id),), (int(by_host), reason[:MOST_REASON])
        return await self._about("fail", host, claim_id, token, *said, things=things, beside=beside)

    async def work_ended(self, host: str, claim_id: str, token: str, reason: str) -> Answer:
        """The host's word that its work has ended, though the claim goes on. (work_ended.lua)

        OK | SAME | ENDING | GONE | STALE | UNKNOWN | ATTEST.
        """
        beside = (self.keys.reason(claim_id),)
        return await self._about("work_ended", host, claim_id, token, reason[:MOST_REASON], beside=beside)

    async def release(
        self,
        host: str,
        claim_id: str,
        token: str = "",
        how: Giving = Giving.ASK,
        things: Collection[str] = (),
        mark: str = "",
        origin: str = "",
        whole: bool = False,
    ) -> Answer:
        """The owner gives it back. OK | ENDING | SAME | ACTIVE | STALE | UNKNOWN | ATTEST. (release.lua)

        ACTIVE only with UNLESS_ACTIVE: nothing was written. `things` as in `fail`. `mark`: only what the claim call of
        this mark was the last to be told of. `origin`: that of the claim, where this is its owner's own word; all that
        goes by it is given up where the claim has come up or succeeded another, or, with `whole`, in any case.
        """
        beside = (self.keys.shelved, self.keys.claim(origin or claim_id))
        said = (how.value, mark, int(whole))
        return await self._about("release", host, claim_id, token, *said, things=things, beside=beside)

    async def shelve(self, host: str, claim_id: str, token: str, things: Collection[str] = ()) -> Answer:
        """The owner gives it back, to have it again later. As release, and GONE | MOVING. (shelve.lua)

        SAME: it is shelved; GONE: it ended, or ends, otherwise; MOVING: it is itself still to succeed another. `things`
        as in `fail`.
        """
        return await self._about("shelve", host, claim_id, token, things=things, beside=(self.keys.shelved,))

    async def gone(
        self,
        host: str,
        claim_id: str,
        token: str,
        why: Why,
        external: Mapping[str, int],
        entry_id: str = "",
        things: Collection[str] = (),
        reason: str = "",
    ) -> Answer:
        """The host's word that the work has ended, with its new external usage. OK | SAME | STALE | UNKNOWN | ATTEST.

        `things` and `reason` as in `fail`. (gone.lua)
        """
        said = (why.value, entry_id, reason[:MOST_REASON], *flat(external))
        beside = (self.keys.reason(claim_id),)
        return await self._about("gone", host, claim_id, token, *said, things=things, beside=beside)

    async def expire(self, due: Sequence[tuple[str, str]]) -> int:
        """End those of the claims (id, host) whose lease has run out; the number expired. (expire.lua)"""
        keys = list(self.keys.due)
        for claim_id, host in due:
            keys += self._claim_keys(host, claim_id)
        keys += [self.keys.reason(claim_id) for claim_id, _ in due]
        expired, things = 0, set[str]()
        for _ in range(MOST_TRIES):
            reply = await self._run("expire", (*keys, *self._thing_keys(things)), flat(due))
            expired += int(reply[3])
            if len(reply) == 4:
                return expired
            things.update(reply[4:])
        return expired

    async def _about(
        self,
        script: str,
        host: str,
        claim_id: str,
        token: str,
        *arguments: str | int,
        things: Collection[str] = (),
        beside: Collection[str] = (),
    ) -> Answer:
        """Say something of a claim. Of the things that it counts in the script names those it misses.

        `beside`: further keys of the script, before those of the things.
        """
        keys = (*self.keys.due, *self._claim_keys(host, claim_id), *beside)
        for _ in range(MOST_TRIES):
            all_keys = (*keys, *self._thing_keys(things))
            answer = await self._answer(script, all_keys, (host, claim_id, token, *arguments))
            if answer.outcome is not Outcome.RETRY:
                return answer
            things = {*things, *answer.facts}
        raise StoreUnavailable(f"claim {claim_id} changes faster than it can be read: try again")

    def _claim_keys(self, host: str, claim_id: str) -> tuple[str, str, str, str]:
        return (self.keys.claim(claim_id), self.keys.host(host), self.keys.claims(host), self.keys.inbox(host))
