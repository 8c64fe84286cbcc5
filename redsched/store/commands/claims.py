"""Scripts and reads about claims."""

import secrets
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from redsched.errors import NotDurable, StoreUnavailable, Unavailable
from redsched.model import HELD, Amounts, Claim, ClaimStatus, EndReason, Reason
from redsched.model.validation import check_amount, check_name, check_slot
from redsched.pacing import Spread, paced
from redsched.store.client.reads import exchange
from redsched.store.codec.claim_codec import ClaimWire, counting_objects
from redsched.store.codec.fields import COUNTED, claim_from, failure_from, stop_failure_from
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, ClaimReply, ReleaseMode, ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CHUNK, CLAIMS_AT_ONCE, MAX_TRIES, CellClient, chunks
from redsched.store.commands.hosts import HostCommands
from redsched.store.commands.texts import TextCommands

HOSTS_AT_ONCE = 50
"""Hosts whose claim ids are read in one pipeline."""
MAX_REASON = 1000
"""The length of a stored reason, in characters."""


class ClaimCommands:
    """One coroutine for each script about claims."""

    def __init__(self, cell: CellClient, hosts: HostCommands, texts: TextCommands) -> None:
        self._cell = cell
        self._hosts = hosts
        self._texts = texts

    async def read(self, ids: Iterable[str]) -> dict[str, Claim]:
        """Return claims by id, including ended ones that are still remembered; unknown ids are left out.

        Claims with alternates cost a second read.
        """
        found: dict[str, Claim] = {}
        wanted = list(ids)
        for some in chunks(wanted, CLAIMS_AT_ONCE) if wanted else ():
            found |= await self._read_claims(some)
        return found

    async def _read_claims(self, ids: Sequence[str]) -> dict[str, Claim]:
        hashes = await self._cell.hashes([self._cell.keys.claim(claim_id) for claim_id in ids])
        pairs = zip(ids, hashes, strict=True)
        found = {one: claim_from(self._cell.name, one, fields) async for one, fields in paced(pairs) if fields}
        alternates = await self._texts.alternates(found)
        return found | {one: found[one].with_alternates(hosts) for one, hosts in alternates.items()}

    async def members_on(self, hosts: Sequence[str], group: str, by: str, most: int) -> dict[str, str] | None:
        """Return where the members of a server group on these hosts are: the host, zone or label value, by claim id.

        '' for a member that is counted in none. Each is where its main placement is; those that are ending are left
        out. None if the hosts have more than `most` claims: all of them are looked at.
        """
        ids = sorted(set(chain.from_iterable(await self._hosts.claim_ids_of(hosts))))
        if len(ids) > most:
            return None
        fields, found = ("group", "state", "host" if by == "host" else f"{COUNTED}{by}"), dict[str, str]()
        for some in chunks(ids) if ids else ():
            with self._cell.reading():
                reads = [("HMGET", self._cell.keys.claim(claim_id), *fields) for claim_id in some]
                values = await exchange(self._cell.reader, reads)
            found |= {
                one: where or ""
                for one, (of, state, where) in zip(some, values, strict=True)
                if of == group and state in HELD
            }
        return found

    async def reasons(self, ids: Iterable[str]) -> dict[str, Reason]:
        """Return why claims failed, expired or lost their work; claims without a stored reason are left out."""
        return (await self.failures(ids))[0]

    async def failures(self, ids: Iterable[str]) -> tuple[dict[str, Reason], dict[str, Reason]]:
        """Return why claims failed, expired or lost their work, and why it could not be stopped, by claim id."""
        wanted = list(ids)
        hashes = await self._cell.hashes([self._cell.keys.reason(claim_id) for claim_id in wanted])
        stored = dict(zip(wanted, hashes, strict=True))
        failed = {one: failure for one, fields in stored.items() if (failure := failure_from(fields)) is not None}
        stuck = {one: failure for one, fields in stored.items() if (failure := stop_failure_from(fields)) is not None}
        return failed, stuck

    async def unended_on(self, hosts: Sequence[str]) -> AsyncIterator[list[Claim]]:
        """Yield the claims on these hosts that have not ended, in lists of at most CLAIMS_AT_ONCE, by pages of hosts.

        Each claim is yielded once, even if it is being moved between two of these hosts.
        """
        moving: set[str] = set()
        for some in chunks(hosts, HOSTS_AT_ONCE):
            ids = list(chain.from_iterable(await self._hosts.claim_ids_of(some)))
            for part in chunks(ids, CLAIMS_AT_ONCE):
                claims = (await self.read(part)).values()
                page = [one for one in claims if one.state is not ClaimStatus.ENDED and one.claim_id not in moving]
                moving.update(one.claim_id for one in page if len(one.placements) > 1)
                yield page

    async def shelved_ids(self) -> Spread[bool]:
        """Return the ids of the claims that are shelved or being shelved."""
        found = Spread[bool]()
        with self._cell.reading():
            async for claim_id in self._cell.reader.sscan_iter(self._cell.keys.shelved, count=CHUNK):
                found[claim_id] = True
        return found

    async def place(self, call: ClaimCall) -> ClaimReply:
        """Place every member on the first of its candidates that fits now, or none of them. (claim.lua, replace.lua)

        Either all members are new claims, or all are existing claims that are placed again.

        Returns once the claims are as durable as the settings require. Raises NotDurable if they are not in time; new
        claims of this call are then released, and its moves are cancelled.
        """
        call_id = call.call_id or (secrets.token_hex(4) if self._cell.scripts.waits else "")
        wire = ClaimWire(self._cell.keys, call, call_id)
        keys = (*wire.keys, *self._cell.keys.object_keys(wire.objects), *wire.last_keys)
        try:
            reply = await self._cell.run(wire.script, keys, wire.arguments, durable=True, origins=call.origins)
        except NotDurable as error:
            answer = wire.answer(error.reply)
            if answer.outcome is Outcome.OK:
                await self._undo(call, answer, call_id)
            if answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE):
                raise
            return answer
        answer = wire.answer(reply)
        self._texts.decisions.add(call, answer)
        return answer

    async def require_durable(self) -> None:
        """Return once all that the cell has now is as durable as the settings require. (touch.lua)

        An answer that repeats the outcome of an earlier call is based on a read, and that call may have written it just
        now, and wait still. Raises NotDurable if it is not in time; then nothing is undone.
        """
        if not self._cell.scripts.waits:
            return
        try:
            await self._cell.run("touch", (), (), durable=True)
        except NotDurable as error:
            what = error.detail.partition(": ")[2]
            raise NotDurable(
                f"the outcome of an earlier call is not as durable as REDSCHED_DURABILITY asks: {what}; send it again",
                reply=error.reply,
            ) from error

    async def _undo(self, call: ClaimCall, answer: ClaimReply, call_id: str) -> None:
        with suppress(Unavailable):  # if this fails, the claims end with their leases
            for member, placed in zip(call.members, answer.placed, strict=True):
                # This release may arrive late, so it must spare a claim that a later call with its id has returned.
                # Moves are cancelled. Claims that were pending or shelved are left to start, because releasing them
                # would end them.
                if member.replacement is None:
                    await self.release(placed.host, member.id, placed.token, call_id=call_id)
                elif member.replacement.end_reason is EndReason.MOVED:
                    await self.release(placed.host, member.id, placed.token, ReleaseMode.UNLESS_ACTIVE)

    async def void(
        self,
        claim_id: str,
        digest: str,
        if_unattested: bool = False,
        token: str = "",
        end_reason: EndReason = EndReason.RELEASED,
    ) -> ScriptResult:
        """Tombstone an id that this cell does not know, so that hosts cannot restore claims with it. (void.lua)

        OK | ALREADY_DONE | CONFLICT (the id has an outcome here). `if_unattested`: only if a host that has not attested
        to this epoch might restore it. `token`: void placements up to this token; '' for all up to now. Facts: the
        token up to which placements are void.
        """
        return await self._cell.answer(
            "void", (self._cell.keys.claim(claim_id),), (digest, int(if_unattested), token, end_reason.value)
        )

    async def accept(self, host: str, claim_id: str, token: str, lease_s: int, entry_id: str = "") -> ScriptResult:
        """Record that the host has accepted the claim. (accept.lua)

        OK | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED; facts: state.
        """
        return await self._about("accept", host, claim_id, token, lease_s * 1000, entry_id)

    async def confirm(
        self, host: str, claim_id: str, token: str, objects: Collection[str] = (), epoch: str = "", log: str = ""
    ) -> ScriptResult:
        """Record that the work runs. (confirm.lua)

        OK | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED. ENDING also if the placement is no longer
        wanted, or its gang has failed. `objects` as in `fail`. `epoch`: the one to which the host has attested, '' for
        any; NOT_ATTESTED if the cell is in another one. `log`: the path of the work's log on the host.
        """
        return await self._about("confirm", host, claim_id, token, epoch, log, objects=objects)

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
        """End the placement of a claim that is not active on a host being emptied, to place it again. (fail.lua)

        OK | ENDING | ALREADY_DONE | ENDED | STALE | UNKNOWN | NOT_ATTESTED; facts: state. The recorded reason is why
        the host is being emptied.
        """
        beside = (f"reason:{claim_id}", *objects)
        return await self._about("fail", host, claim_id, token, 0, "leave", "", objects=beside)

    async def requeue_with_gang(
        self, host: str, claim_id: str, token: str, reason: str, objects: Collection[str] = ()
    ) -> ScriptResult:
        """End the placement of a member of a gang, to place it again with the others. (fail.lua)

        OK | ENDING | ALREADY_DONE | ENDED | STALE | UNKNOWN | NOT_ATTESTED; facts: state. `reason`: why, as text.
        """
        beside = (f"reason:{claim_id}", *objects)
        arguments = (0, "with-gang", reason[:MAX_REASON])
        return await self._about("fail", host, claim_id, token, *arguments, objects=beside)

    async def postpone(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """Postpone the next placement of a pending claim, because there is no place for it now. (fail.lua)

        OK | STALE | UNKNOWN | NOT_ATTESTED. `token`: that of the placement that failed. `reason`: why there is no
        place, as text.
        """
        objects = (f"reason:{claim_id}",)
        return await self._about("fail", host, claim_id, token, 0, "later", reason[:MAX_REASON], objects=objects)

    async def work_ended(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """Record the host's report that the work has ended by itself, without ending the claim. (work_ended.lua)

        OK | ALREADY_DONE | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED.
        """
        objects = (f"reason:{claim_id}",)
        return await self._about("work_ended", host, claim_id, token, reason[:MAX_REASON], objects=objects)

    async def stop_failed(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """Record the host's report that it could not stop the work of a placement that is ending. (stop_failed.lua)

        OK | ENDED | STALE | UNKNOWN | NOT_ATTESTED.
        """
        objects = (f"reason:{claim_id}",)
        return await self._about("stop_failed", host, claim_id, token, reason[:MAX_REASON], objects=objects)

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
        a second call. `token`: '' for any; the token of a move's target cancels only the move. `end_reason`: RELEASED,
        FAILED, or SHELVED, to place it again later (ENDED: it ended otherwise). `call_id`: only if the claim call with
        this id was the last one to return the claim. `closed`: repeat an earlier release, up to this token. `reason`:
        why, as text. Facts: the token up to which it is closed. ACTIVE only with UNLESS_ACTIVE: nothing was written.
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
        """Record the host's report that the work is gone, with the host's new external usage. (gone.lua)

        OK | ALREADY_DONE | STALE | UNKNOWN | NOT_ATTESTED. `objects` and `reason` as in `fail`. Facts of OK and
        ALREADY_DONE: why it ended.
        """
        arguments = (end_reason.value, entry_id, reason[:MAX_REASON], *flat(external))
        beside = (f"reason:{claim_id}", *objects)
        return await self._about("gone", host, claim_id, token, *arguments, objects=beside)

    async def reconcile(self, ids: Collection[str], objects: Collection[str] = (), gang_done: bool = False) -> int:
        """Reconcile claims; return the number changed. (reconcile.lua)

        `objects`: the objects that count them, including their hosts (see `counted_by`). `gang_done`:
        `GangCommands.end` has returned True for their gangs.
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
        """Run a script, and repeat it with the keys of the hosts and other objects that it reports as missing."""
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
        """Change all amounts of a claim, by slot, at its owner's request. (resize.lua)

        OK | ALREADY_DONE (this token was resized to these amounts; facts of both: token, state) | FULL (facts: slot,
        rule, value, next smaller and next larger amount: see resize.lua) | MOVING (it is being moved) | ENDING |
        ENDED | STALE | UNKNOWN | NOT_ATTESTED | OVER_QUOTA (facts: see `exceeded`) | UNSHARED. `objects` as in `fail`,
        for its amounts before and after; `limited` as in a ClaimCall.
        """
        _check(amounts)
        return await self._about("resize", host, claim_id, token, int(limited), *flat(amounts), objects=objects)

    async def resized(
        self, host: str, claim_id: str, token: str, amounts: Amounts, objects: Collection[str] = ()
    ) -> ScriptResult:
        """Record the host's report of the amounts that the work has now: the requested or the old ones. (resized.lua)

        OK | ALREADY_DONE (no resize is under way) | CONFLICT (more than the claim holds) | ENDING | ENDED | STALE |
        UNKNOWN | NOT_ATTESTED. `objects` as in `fail`.
        """
        _check(amounts)
        return await self._about("resized", host, claim_id, token, *flat(amounts), objects=objects)

    async def report_local(
        self, host: str, claim_id: str, amounts: Amounts, project: str = "", consumer: str = "", token: str = ""
    ) -> ScriptResult:
        """Record work that a host runs without a claim, or new amounts of such work. (local.lua)

        `token` is that of the last placement of the claim known to the host, '' for none. OK | ALREADY_DONE (facts of
        both: token, placed) | STALE (the store has a later placement; facts: its token, '' for a claim that has ended)
        | CONFLICT (the id belongs to another claim) | FULL (facts: the count that would be too high, such as
        `claimed.VCPU`) | NOT_ATTESTED.
        """
        check_name("claim", claim_id)
        _check(amounts)
        objects = counting_objects("", amounts, project=project)
        return await self._about("local", host, claim_id, token, project, consumer, *flat(amounts), objects=objects)


def _check(amounts: Amounts) -> None:
    for slot, amount in amounts.items():
        check_amount(check_slot(slot), amount, minimum=1)
