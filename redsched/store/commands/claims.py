"""Scripts and reads about claims."""

import secrets
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from redsched.errors import NotDurable, StoreUnavailable, Unavailable
from redsched.model import Amounts, Claim, ClaimStatus, EndReason, Reason
from redsched.model.validation import check_amount, check_name, check_slot
from redsched.pacing import Spread, paced
from redsched.store.codec.claim_codec import ClaimWire, counting_objects
from redsched.store.codec.fields import claim_from, reason_from
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ClaimAnswer, ClaimCall, ReleaseMode, ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CHUNK, CLAIMS_AT_ONCE, MAX_TRIES, CellClient, chunks
from redsched.store.commands.hosts import HostCommands

HOSTS_AT_ONCE = 50
"""Hosts whose claim ids are read in one pipeline."""
MAX_REASON = 1000
"""The length of a stored reason, in characters."""
LOCAL = "local"
"""The digest of a local claim. No request has it: theirs are hexadecimal, so using one id for both is a CONFLICT."""


class ClaimCommands:
    """One coroutine for each script about claims."""

    def __init__(self, cell: CellClient, hosts: HostCommands) -> None:
        self._cell = cell
        self._hosts = hosts

    async def read(self, ids: Iterable[str]) -> dict[str, Claim]:
        """Return claims by id, including ended ones that are still remembered; unknown ids are left out."""
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
        """Return why claims failed, expired or lost their work; claims without a stored reason are left out."""
        wanted = list(ids)
        hashes = await self._cell.hashes([self._cell.keys.reason(claim_id) for claim_id in wanted])
        pairs = zip(wanted, hashes, strict=True)
        return {claim_id: reason_from(fields) for claim_id, fields in pairs if fields}

    async def unended_on(self, hosts: Sequence[str]) -> AsyncIterator[list[Claim]]:
        """Yield the claims on these hosts that have not ended, by pages of hosts and CLAIMS_AT_ONCE claims at most.

        Each is yielded once, also one that is being moved and is on two of the hosts.
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
        """Return the ids of the claims that are shelved or being shelved."""
        found = Spread[bool]()
        with self._cell.reading():
            async for claim_id in self._cell.reader.sscan_iter(self._cell.keys.shelved, count=CHUNK):
                found[claim_id] = True
        return found

    async def place(self, call: ClaimCall) -> ClaimAnswer:
        """Place every member on the first of its candidates that fits now, or none of them. (claim.lua, replace.lua)

        Either all members are new claims, or all are existing claims that are placed again.

        Returns once the claims are as durable as the settings ask. Raises NotDurable if they are not in time; claims
        that this call has made are then ended, and moves are called off.
        """
        call_id = call.call_id or (secrets.token_hex(4) if self._cell.scripts.waits else "")
        wire = ClaimWire(self._cell.keys, call, call_id)
        keys = (*wire.keys, *self._cell.keys.object_keys(wire.objects), *wire.last_keys)
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
        with suppress(Unavailable):  # then their leases end them
            for member, placed in zip(call.members, answer.placed, strict=True):
                # This may arrive late: a caller that has been given the claim since, by the same id, must keep it.
                # Moves are called off; claims that were pending or shelved start all the same, as a release would end
                # them.
                if member.replacement is None:
                    await self.release(placed.host, member.id, placed.token, call_id=call_id)
                elif member.replacement.end_reason is EndReason.MOVED:
                    await self.release(placed.host, member.id, placed.token, ReleaseMode.UNLESS_ACTIVE)

    async def void(
        self,
        claim_id: str,
        digest: str,
        unheard: bool = False,
        token: str = "",
        end_reason: EndReason = EndReason.RELEASED,
    ) -> ScriptResult:
        """Close this cell to an id that is not known here. (void.lua)

        OK | ALREADY_DONE | CONFLICT (it has an outcome here). `unheard`: only if a host that has not attested in this
        epoch might bring it back. `token`: close it to placements up to that token; '' for now. Facts: the token up to
        which it is closed.
        """
        return await self._cell.answer(
            "void", (self._cell.keys.claim(claim_id),), (digest, int(unheard), token, end_reason.value)
        )

    async def accept(self, host: str, claim_id: str, token: str, lease_s: int, entry_id: str = "") -> ScriptResult:
        """Record that the host has accepted the claim. (accept.lua)

        OK | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED; facts: state.
        """
        return await self._about("accept", host, claim_id, token, lease_s * 1000, entry_id)

    async def confirm(
        self, host: str, claim_id: str, token: str, objects: Collection[str] = (), epoch: str = ""
    ) -> ScriptResult:
        """Record that the work runs. (confirm.lua)

        OK | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED. ENDING also if the placement is no longer
        wanted, or its gang has failed meanwhile. `objects` as in `fail`. `epoch`: the one that the host has attested
        to, '' for any; NOT_ATTESTED if the cell is in another one.
        """
        return await self._about("confirm", host, claim_id, token, epoch, objects=objects)

    async def renew(self, host: str, claim_id: str, token: str, lease_s: int) -> ScriptResult:
        """Renew the lease of a claim that is not active yet. (renew.lua)

        OK (facts: expires_at_ms) | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED.
        """
        return await self._about("renew", host, claim_id, token, lease_s * 1000)

    async def fail(
        self,
        host: str,
        claim_id: str,
        token: str,
        by_host: bool,
        objects: Collection[str] = (),
        retry: bool | None = None,
        reason: str = "",
    ) -> ScriptResult:
        """Record that the work could not be started. (fail.lua)

        OK | ENDING | ALREADY_DONE | ENDED | STALE | UNKNOWN | NOT_ATTESTED; facts: state. `retry`: whether to place the
        claim again; None: as its request says. `objects`: what counts it besides its host (see `counting_objects`), if
        the caller knows, which saves a second call. `reason`: why, as text.
        """
        wish = "" if retry is None else int(retry)
        beside = (f"reason:{claim_id}", *objects)
        arguments = (int(by_host), wish, reason[:MAX_REASON])
        return await self._about("fail", host, claim_id, token, *arguments, objects=beside)

    async def fail_with_gang(self, host: str, claim_id: str, token: str, objects: Collection[str] = ()) -> ScriptResult:
        """End a member of a gang that has failed. (fail.lua)

        As `fail`, also for `objects`; ALREADY_DONE if it is active and its gang may be complete.
        """
        beside = (f"reason:{claim_id}", *objects)
        return await self._about("fail", host, claim_id, token, 0, "gang", "", objects=beside)

    async def requeue(self, host: str, claim_id: str, token: str, objects: Collection[str] = ()) -> ScriptResult:
        """Take a claim that is not active yet off a host that is being drained, to be placed again. (fail.lua)

        OK | ENDING | ALREADY_DONE | ENDED | STALE | UNKNOWN | NOT_ATTESTED; facts: state. The reason is that of its
        host.
        """
        beside = (f"reason:{claim_id}", *objects)
        return await self._about("fail", host, claim_id, token, 0, "leave", "", objects=beside)

    async def postpone(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """Postpone the search for a place for a pending claim: there is none now. (fail.lua)

        OK | STALE | UNKNOWN | NOT_ATTESTED. `token`: that of the placement that failed, to which the search belongs.
        `reason`: why there is no place, as text.
        """
        objects = (f"reason:{claim_id}",)
        return await self._about("fail", host, claim_id, token, 0, "later", reason[:MAX_REASON], objects=objects)

    async def work_ended(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """Record that the work has ended, as its host reports, though the claim goes on. (work_ended.lua)

        OK | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED.
        """
        objects = (f"reason:{claim_id}",)
        return await self._about("work_ended", host, claim_id, token, reason[:MAX_REASON], objects=objects)

    async def release(
        self,
        host: str,
        claim_id: str,
        token: str = "",
        how: ReleaseMode = ReleaseMode.ASK,
        objects: Collection[str] = (),
        call_id: str = "",
        end_reason: EndReason = EndReason.RELEASED,
        closed: str = "",
        reason: str = "",
    ) -> ScriptResult:
        """Release a claim, wherever it is. (release.lua)

        OK | ENDING | ALREADY_DONE | ENDED | ACTIVE | STALE | UNKNOWN. `host` ('' if it is not known) and `objects` save
        a second call. `token`: '' for any; that of a placement to which the claim is being moved calls off only the
        move. `end_reason`: RELEASED, FAILED, or SHELVED, to place it again later (ENDED: it ended otherwise).
        `call_id`: only if the claim call of this id was the last one answered with it. `closed`: repeat an earlier
        closing. `reason`: why, as text. Facts: the token up to which it is closed. ACTIVE only with UNLESS_ACTIVE:
        nothing was written.
        """
        hosts, reasons = [f"host:{host}"] * bool(host), [f"reason:{claim_id}"] * bool(reason)
        beside = (*hosts, *reasons, *objects)
        arguments = (claim_id, token, end_reason.value, how.value, call_id, closed, reason[:MAX_REASON])
        return await self._until_passed("release", (self._cell.keys.claim(claim_id),), arguments, beside)

    async def shelve(self, host: str, claim_id: str, token: str, objects: Collection[str] = ()) -> ScriptResult:
        """Release a claim that is to be placed again later: `release` with SHELVED."""
        return await self.release(host, claim_id, token, objects=objects, end_reason=EndReason.SHELVED)

    async def gone(
        self,
        host: str,
        claim_id: str,
        token: str,
        end_reason: EndReason,
        external: Mapping[str, int],
        entry_id: str = "",
        objects: Collection[str] = (),
        reason: str = "",
    ) -> ScriptResult:
        """Record that the work has ended, as its host reports, with the host's new external usage. (gone.lua)

        OK | ALREADY_DONE | STALE | UNKNOWN | NOT_ATTESTED. `objects` and `reason` as in `fail`. Facts of OK and
        ALREADY_DONE: why it ended.
        """
        arguments = (end_reason.value, entry_id, reason[:MAX_REASON], *flat(external))
        beside = (f"reason:{claim_id}", *objects)
        return await self._about("gone", host, claim_id, token, *arguments, objects=beside)

    async def reconcile(self, ids: Collection[str], objects: Collection[str] = (), gang_done: bool = False) -> int:
        """Do whatever is due about claims; return the number changed. (reconcile.lua)

        `objects`: what counts them, including their hosts (see `counted_by`). `gang_done`: `GangCommands.end` has
        returned True for their gangs.
        """
        changed = 0
        for some in chunks(list(ids)):
            keys = tuple(map(self._cell.keys.claim, some))
            answer = await self._until_passed("reconcile", keys, (int(gang_done), *some), objects)
            changed += int(answer.facts[0])
        return changed

    async def _about(
        self, script: str, host: str, claim_id: str, token: str, *arguments: str | int, objects: Collection[str] = ()
    ) -> ScriptResult:
        """Run a script about one placement of a claim."""
        name = f"host:{host}"
        beside = (name, *(one for one in objects if one != name))
        return await self._until_passed(
            script, (self._cell.keys.claim(claim_id),), (host, claim_id, token, *arguments), beside
        )

    async def _until_passed(
        self, script: str, keys: Sequence[str], arguments: Sequence[str | int], objects: Collection[str]
    ) -> ScriptResult:
        """Run a script, again with the keys of the hosts and other objects that it has reported as missing."""
        beside = dict.fromkeys(objects)
        for _ in range(MAX_TRIES):
            answer = await self._cell.answer(
                script, (*self._cell.keys.due, *keys, *self._cell.keys.object_keys(beside)), arguments
            )
            if answer.outcome is not Outcome.RETRY:
                return answer
            beside |= dict.fromkeys(answer.facts)
        raise StoreUnavailable(
            f"{script}: the objects that the claims count in change faster than they can be read: try again"
        )

    async def resize(
        self,
        host: str,
        claim_id: str,
        token: str,
        amounts: Amounts,
        objects: Collection[str] = (),
        limited: bool = False,
    ) -> ScriptResult:
        """Change a claim's amounts, as its owner asks: all of them, by slot. (resize.lua)

        OK | ALREADY_DONE (this token was resized to these amounts; facts of both: token, state) | FULL (facts: slot) |
        MOVING (it is being moved) | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED | OVER_QUOTA (facts: see
        `exceeded`) | UNSHARED. `objects` as in `fail`, for its amounts before and after; `limited` as in a ClaimCall.
        """
        _check(amounts)
        return await self._about("resize", host, claim_id, token, int(limited), *flat(amounts), objects=objects)

    async def resized(
        self, host: str, claim_id: str, token: str, amounts: Amounts, objects: Collection[str] = ()
    ) -> ScriptResult:
        """Record the amounts that the work has now, as its host reports: the wanted or the old ones. (resized.lua)

        OK | ALREADY_DONE (no resize is under way) | CONFLICT (more than the claim holds) | ENDING | ENDED | STALE |
        UNKNOWN | NOT_ATTESTED. `objects` as in `fail`.
        """
        _check(amounts)
        return await self._about("resized", host, claim_id, token, *flat(amounts), objects=objects)

    async def report_local(
        self, host: str, claim_id: str, amounts: Amounts, project: str = "", consumer: str = "", token: str = ""
    ) -> ScriptResult:
        """Record work that a host runs without a claim, or new amounts of such work. (local.lua)

        `token` is that of the claim's last placement that the host knows of, '' for none. OK | ALREADY_DONE (facts of
        both: token, placed) | STALE (the store knows a later placement; facts: its token, '' for a claim that has
        ended) | CONFLICT (the id is another claim's) | NOT_ATTESTED.
        """
        check_name("claim", claim_id)
        _check(amounts)
        objects = counting_objects("", amounts, project=project)
        return await self._about("local", host, claim_id, token, project, consumer, *flat(amounts), objects=objects)


def _check(amounts: Amounts) -> None:
    for slot, amount in amounts.items():
        check_amount(check_slot(slot), amount, minimum=1)
