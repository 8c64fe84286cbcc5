"""Hosts with journals, an owner and schedulers, which use a store that may lose its data.

The journals hold what really runs. This module holds what the owner knows and what schedulers repeat in a new epoch.
So it can determine at any time what should live, whatever the store contains. docs/model/placements.pml models the
same world.
"""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from redsched.model import ENDING_OR_ENDED, LEASED, Candidate, Claim, ClaimStatus, EndReason, Placement, Token
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.claim_fields import record_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import (
    ClaimCall,
    ClaimReply,
    EndedPlacement,
    JournaledClaim,
    Member,
    Replacement,
    ScriptResult,
)
from tests.support.builders.cells import HOUR_S, call_of, report_of
from tests.support.builders.placements import Snapshot, let_settle, restore, snapshot
from tests.support.models.sums import all_claims, check_sums

ROOM = 1000
CLAIMED, STARTING, ACTIVE, ENDING = (ClaimStatus(one) for one in ("claimed", "starting", "active", "ending"))
STOPPED = (Outcome.ENDED, Outcome.STALE, Outcome.UNKNOWN)


@dataclass
class Entry:
    """A placement in a journal. A `claimed` one has not been accepted: nothing runs yet."""

    claim_id: str
    placed: str
    token: str
    root: str
    state: ClaimStatus
    record: dict[str, str]

    def held(self) -> JournaledClaim:
        return JournaledClaim(self.claim_id, self.token, self.placed, self.root, self.state, self.record)


@dataclass
class Agent:
    """A host's agent: its placements, and those that it remembers as ended."""

    name: str
    journal: dict[str, Entry] = field(default_factory=dict)
    ended: dict[str, EndedPlacement] = field(default_factory=dict)
    is_dead: bool = False
    """The host was written off, and has not attested since."""

    def end(self, entry: Entry) -> None:
        """Stop the work."""
        del self.journal[entry.placed]
        self.ended[entry.placed] = EndedPlacement(entry.claim_id, entry.token, entry.placed)


@dataclass
class Owned:
    """The owner's knowledge of a claim: its last request, whether work was confirmed since, and repeatable calls."""

    wish: str = "lives"
    is_owed: bool = False
    """A host has confirmed it, and since then neither its owner nor its host nor a write-off has ended it."""
    closings: list[tuple[str, EndReason]] = field(default_factory=list)

    def has_closed(self, entry: Entry) -> bool:
        """Return whether a placement predates its owner's release, and its host has not learned of that yet."""
        return any(Token.parse(entry.root) <= Token.parse(closed) for closed, _ in self.closings)


class Histories:
    """The world. Each method is a step of one participant, whatever the others have done."""

    def __init__(self, cell: CellStore, raw: Any, hosts: tuple[str, ...]) -> None:
        self.cell, self.raw = cell, raw
        self.agents = {name: Agent(name) for name in hosts}
        self.claims: dict[str, Owned] = {}
        self.sent: list[tuple[str, ClaimCall]] = []
        self.said: list[Callable[[], Coroutine[Any, Any, ScriptResult]]] = []
        self.snapshots: list[Snapshot] = []

    # The actual state, independent of the store

    def entries(self, claim_id: str) -> Iterator[tuple[Agent, Entry]]:
        """Return all journal entries of a claim."""
        for agent in self.agents.values():
            for entry in list(agent.journal.values()):
                if entry.claim_id == claim_id:
                    yield agent, entry

    async def read(self, claim_id: str) -> Claim | None:
        return (await self.cell.claims.read([claim_id])).get(claim_id)

    async def is_heard(self, agent: Agent) -> bool:
        """Return whether the agent's host has attested to this epoch."""
        epoch = (await self.cell.tick()).epoch
        return bool(await self.raw.hget(self.cell.keys.host(agent.name), "epoch") == epoch)

    # Hosts

    async def attest(self, agent: Agent) -> None:
        """Report, and attest with the journal if necessary."""
        await self.cell.hosts.report(report_of(agent.name, VCPU=ROOM))
        held = [one.held() for one in agent.journal.values()]
        answer = await self.cell.hosts.attest(agent.name, "", None, held, list(agent.ended.values()), HOUR_S)
        assert answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE)
        for placed in answer.drop:
            agent.end(agent.journal[placed])
        agent.is_dead = False
        if await self.raw.hget(self.cell.keys.host(agent.name), "status") != "enabled":
            await self.raw.hset(self.cell.keys.host(agent.name), "status", "enabled")

    async def hear(self, agent: Agent, confirm: bool) -> None:
        """Act on the inbox. With `confirm`, all starting work becomes active."""
        if not await self.is_heard(agent):
            await self.attest(agent)
        for notification in await self.cell.hosts.inbox(agent.name):
            await self._take(agent, notification.claim_id, notification.token, notification.entry_id)
        for entry in list(agent.journal.values()):
            if entry.state is CLAIMED:
                await self.accept(agent, entry)
            if entry.state is STARTING and confirm:
                await self.confirm(agent, entry)
            elif entry.state is ENDING:
                await self.stop(agent, entry)

    async def hear_next(self, agent: Agent) -> bool:
        """Do one pending action; return whether there was one."""
        for notification in await self.cell.hosts.inbox(agent.name):
            await self._take(agent, notification.claim_id, notification.token, notification.entry_id)
        by_state: dict[ClaimStatus, Callable[[Agent, Entry], Coroutine[Any, Any, None]]]
        by_state = {CLAIMED: self.accept, STARTING: self.confirm, ENDING: self.stop}
        for entry in agent.journal.values():
            if entry.state in by_state:
                await by_state[entry.state](agent, entry)
                return True
        return False

    async def _take(self, agent: Agent, claim_id: str, token: str, entry_id: str) -> None:
        found = await self.read(claim_id)
        view = found.at(token) if found else None
        known = agent.journal.get(view.placed) if view else None
        if view and known and known.state is not ENDING and view.state is not ENDING:
            await self._make_so(agent, known, view)
        elif view is None or view.host != agent.name:
            await self.cell.claims.accept(agent.name, claim_id, token, HOUR_S, entry_id)
        elif view.state is ENDING and known:
            known.state = ENDING
        elif view.state is ENDING:
            answer = await self.cell.claims.gone(agent.name, claim_id, token, EndReason.RELEASED, {}, entry_id)
            assert answer.outcome is Outcome.OK
        elif known is None:
            (root,) = [one.root for one in view.placements if one.token == token]
            agent.journal[view.placed] = Entry(claim_id, view.placed, token, root, CLAIMED, record_of(view))

    async def _make_so(self, agent: Agent, entry: Entry, view: Claim) -> None:
        """Resize the work of a placement, and report it; the journal comes first."""
        entry.token, entry.record = view.token, record_of(view)
        if view.resizing_to:
            await self.cell.claims.resized(agent.name, view.claim_id, view.token, view.resizing_to)
            found = await self.read(view.claim_id)
            now = found.at(view.token) if found else None
            entry.record = record_of(now) if now else entry.record

    async def accept(self, agent: Agent, entry: Entry) -> None:
        answer = await self.cell.claims.accept(agent.name, entry.claim_id, entry.token, HOUR_S)
        await self._heard(agent, entry, answer, STARTING)

    async def confirm(self, agent: Agent, entry: Entry) -> None:
        answer = await self.cell.claims.confirm(agent.name, entry.claim_id, entry.token)
        await self._heard(agent, entry, answer, ACTIVE)
        if answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE):
            owned = self.claims[entry.claim_id]
            owned.is_owed = owned.is_owed or (owned.wish == "lives" and not owned.has_closed(entry))

    async def _heard(self, agent: Agent, entry: Entry, answer: ScriptResult, state: ClaimStatus) -> None:
        if answer.outcome is Outcome.NOT_ATTESTED:
            await self.attest(agent)
        elif answer.outcome is Outcome.ENDING:
            entry.state = ENDING
        elif answer.outcome is Outcome.SETTLING:
            pass  # it asks again: another host may have a later placement
        elif answer.outcome in STOPPED:
            agent.end(entry)
        elif entry.state is not ACTIVE:
            entry.state = state

    async def stop(self, agent: Agent, entry: Entry) -> None:
        """Stop the work of an ending placement: first in the journal, then in the store."""
        answer = await self.cell.claims.gone(agent.name, entry.claim_id, entry.token, EndReason.RELEASED, {})
        if answer.outcome is Outcome.NOT_ATTESTED:
            await self.attest(agent)
        else:
            agent.end(entry)

    async def fail(self, agent: Agent, entry: Entry, retry: bool | None) -> None:
        """Report from the host that a placement has failed."""
        answer = await self.cell.claims.fail(agent.name, entry.claim_id, entry.token, by_host=True, retry=retry)
        if answer.outcome is Outcome.NOT_ATTESTED:
            await self.attest(agent)
            return
        if entry.state is ACTIVE:
            self.claims[entry.claim_id].is_owed = False
        agent.end(entry)

    async def write_off(self, agent: Agent) -> None:
        """Write the host off: it counts as dead, and so does everything that runs there."""
        answer = await self.cell.hosts.write_off(agent.name, force=True)
        if answer.outcome is Outcome.UNKNOWN:
            return
        agent.is_dead = True
        for entry in agent.journal.values():
            self.claims[entry.claim_id].is_owed = False

    # The owner, and schedulers

    async def send(self, claim_id: str, member: Member) -> ClaimReply:
        call = call_of(await self.cell.tick(), member, max_attempts=2)
        self.sent.append((claim_id, call))
        return await self.cell.claims.place(call)

    async def claim(self, host: str) -> str:
        claim_id = f"c{len(self.claims) + 1}"
        self.claims[claim_id] = Owned()
        await self.send(claim_id, Member(claim_id, (Candidate(host, {"VCPU": 1}),)))
        return claim_id

    async def place_again(self, claim_id: str, host: str, end_reason: EndReason, by_s: int = 0) -> Outcome | None:
        """Place a claim again, according to the store."""
        found = await self.read(claim_id)
        if found is None:
            return None
        token = found.retry_from if end_reason is EndReason.FAILED else found.token
        replacement = Replacement(found.host, token, end_reason, by_s)
        answer = await self.send(claim_id, Member(claim_id, (Candidate(host, {"VCPU": 1}),), replacement=replacement))
        if end_reason is EndReason.SHELVED and answer.outcome is Outcome.OK:
            self.claims[claim_id].wish, self.claims[claim_id].is_owed = "lives", False
        return answer.outcome

    async def send_again(self, which: int) -> None:
        """Execute a late copy of a call, whose reply is ignored."""
        if self.sent:
            claim_id, call = self.sent[-1 - which % len(self.sent)]
            if self.claims[claim_id].wish != "shelved":
                await self.cell.claims.place(call)

    async def release(self, claim_id: str, end_reason: EndReason) -> None:
        """Release a claim as its owner, and record the reply."""
        answer = await self.cell.claims.release("", claim_id, end_reason=end_reason)
        if answer.outcome is Outcome.UNKNOWN:
            answer = await self.cell.claims.void(claim_id, "digest", if_unattested=True, end_reason=end_reason)
        if answer.outcome in (Outcome.OK, Outcome.ENDING, Outcome.ALREADY_DONE):
            owned = self.claims[claim_id]
            owned.wish, owned.is_owed = end_reason.value if owned.wish != "released" else owned.wish, False
            owned.closings.append((answer.facts[0], end_reason))

    async def repeat_closings(self) -> None:
        """Repeat the answered releases, as schedulers do in a new epoch."""
        for claim_id, owned in self.claims.items():
            for closed, end_reason in owned.closings:
                answer = await self.cell.claims.release("", claim_id, end_reason=end_reason, closed=closed)
                if answer.outcome is Outcome.UNKNOWN:
                    await self.cell.claims.void(
                        claim_id, "digest", if_unattested=True, token=closed, end_reason=end_reason
                    )

    async def call_off(self, claim_id: str) -> None:
        """Cancel a move as the owner."""
        found = await self.read(claim_id)
        target = found.target if found and found.state is ACTIVE else None
        if target and target.state in LEASED:
            answer = await self.cell.claims.release(target.host, claim_id, target.token)
            assert answer.outcome in (Outcome.OK, Outcome.ENDING)
            assert answer.facts == ("",)

    async def resize(self, claim_id: str, vcpu: int) -> None:
        """Request another amount as the owner."""
        found = await self.read(claim_id)
        if found and found.placements:
            await self.cell.claims.resize(found.host, claim_id, found.token, {"VCPU": vcpu})

    async def reconcile(self, claim_id: str) -> None:
        found = await self.read(claim_id)
        await self.cell.claims.reconcile([claim_id], counted_by(found) if found else ())

    async def expire(self, claim_id: str, of_move: bool) -> None:
        """Set the end of all leases of a claim, or the deadline of its move, to the past."""
        found = await self.read(claim_id)
        name = "move_deadline_ms" if of_move else "expires_at_ms"
        due = [one for one in found.placements if getattr(one, name) is not None] if found else []
        for one in due:
            await self.raw.hset(self.cell.keys.claim(claim_id), self._field(found, one, name), 1)
        if due:
            await self.raw.zadd(self.cell.keys.deadlines, {claim_id: 1})
            await self.reconcile(claim_id)

    @staticmethod
    def _field(claim: Claim | None, one: Placement, name: str) -> str:
        assert claim
        return name if one is claim.placements[0] else f"placement.{one.placed}.{name}"

    # The store

    async def remember(self) -> None:
        """Record a snapshot that the store may go back to."""
        self.snapshots.append(await snapshot(self.raw))

    async def lose(self, to: Snapshot | None) -> None:
        """Take the store back to a snapshot, or wipe it."""
        epoch = (await self.cell.tick()).epoch
        await restore(self.raw, to or {})
        await self.cell.raise_epoch(epoch)
        await self.raw.hset(self.cell.keys.meta, mapping={"jump_s": "3600", "settle_s": "3600"})

    # Invariants

    async def check_always(self) -> None:
        """Check that the counters equal the claims, and nothing was freed while an attested host runs it."""
        await check_sums(self.cell, self.raw)
        claims = await all_claims(self.cell, self.raw)
        for agent in self.agents.values():
            if await self.is_heard(agent):
                placements = [one for claim in claims.values() for one in claim.placements]
                counted = {one.placed for one in placements if one.host == agent.name}
                runs = {one.placed for one in agent.journal.values() if one.state is not CLAIMED}
                assert runs <= counted, f"{agent.name} runs what is not counted: {runs - counted}"

    async def settle(self) -> None:
        """Let hosts, owner and schedulers do their pending actions until none is left."""
        await self.repeat_closings()
        for agent in self.agents.values():
            if not agent.is_dead:
                await self.attest(agent)
        if not (await self.cell.tick()).settled:
            for agent in self.agents.values():
                if agent.is_dead:
                    await self.cell.hosts.write_off(agent.name, force=True)
            await let_settle(self.cell, self.raw)
        for _ in range(8):
            for claim_id in self.claims:
                await self._finish(claim_id)
            for agent in self.agents.values():
                if not agent.is_dead:
                    await self.hear(agent, confirm=True)

    async def _finish(self, claim_id: str) -> None:
        await self.reconcile(claim_id)
        found = await self.read(claim_id)
        open_hosts = [agent.name for agent in self.agents.values() if not agent.is_dead]
        if found and found.state is ClaimStatus.PENDING and open_hosts:
            await self.place_again(claim_id, open_hosts[0], EndReason.FAILED)

    async def check_settled(self) -> None:
        """Check that the live placements are those that the owner's replies imply."""
        await self.check_always()
        stored = await all_claims(self.cell, self.raw)
        for claim_id, owned in self.claims.items():
            found = stored.get(claim_id)
            running = [(agent, one) for agent, one in self.entries(claim_id) if not agent.is_dead]
            there = [one for one in found.placements if not self.agents[one.host].is_dead] if found else []
            assert sorted(one.placed for _, one in running) == sorted(one.placed for one in there), claim_id
            assert len(running) <= 1, f"{claim_id} runs {len(running)} times"
            assert all(one.state is ACTIVE for _, one in running), claim_id
            if owned.wish == "lives":
                assert running or not owned.is_owed, f"{claim_id} was confirmed, and is lost"
            else:
                assert not running, f"{claim_id} was {owned.wish}, and lives"
                assert not found or found.state in ENDING_OR_ENDED, claim_id
            if owned.wish == "shelved" and found and "voided_at_ms" not in found.raw:
                assert (found.state, found.end_reason) == ("ended", EndReason.SHELVED), claim_id
