"""Hosts for tests of the scheduler: each acts as an agent would, and remembers what runs on it.

Small on purpose: `redsched.agent` has hooks, a durable journal and a loop of its own, which have tests of their own.
"""

from collections.abc import Iterable, Sequence

from redsched.model import AgentStamp, Claim, ClaimStatus, EndReason, HostReport, Inventory
from redsched.store.cell import CellStore
from redsched.store.codec.claim_fields import record_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import AttestReply, EndedPlacement, JournaledClaim


class PlainHost:
    """One host with VCPU, and its journal in memory. Nobody renews its lease but `speak` and `measure`."""

    def __init__(self, cell: CellStore, name: str, vcpu: int, lease_s: int = 3600) -> None:
        self.name = name
        self.report = HostReport(name, {"VCPU": Inventory(vcpu)}, lease_s=lease_s)
        self.held: dict[str, JournaledClaim] = {}
        self.ended: dict[str, EndedPlacement] = {}
        """The journaled and the ended placements, both by `placed`."""
        self.restored_over = False
        """Whether an attestation has restored more than the host has: claims are facts, and all of them count."""
        self._cell = cell
        self._number = 0

    async def speak(self) -> None:
        """Report, and attest with the whole journal to the present epoch."""
        answer = await self._attest()
        while answer.outcome is Outcome.UNKNOWN:  # the store was wiped between report and attestation
            answer = await self._attest()
        assert answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE), answer
        if answer.outcome is Outcome.OK:
            [now] = await self._cell.hosts.read([self.name])
            self.restored_over |= int(now.fields.get("claimed.VCPU", "0")) > self.report.inventories["VCPU"].total
        for placed in answer.drop:
            self._forget(placed)

    async def _attest(self) -> AttestReply:
        await self._cell.hosts.report(self.report, self._stamp())
        held, ended = tuple(self.held.values()), tuple(self.ended.values())
        return await self._cell.hosts.attest(self.name, "", self._stamp(), held, ended)

    async def measure(self, external: int) -> None:
        """Report with a different external usage."""
        self.report = HostReport(
            self.name, self.report.inventories, external={"VCPU": external}, lease_s=self.report.lease_s
        )
        await self._cell.hosts.report(self.report, self._stamp())

    async def work(self) -> None:
        """Accept and confirm the claims in the inbox; end those whose end is requested."""
        for entry in await self._cell.hosts.inbox(self.name):
            if entry.op == "claim":
                await self._take_up(entry.claim_id, entry.token, entry.entry_id)
            else:
                await self._cell.claims.gone(
                    self.name, entry.claim_id, entry.token, EndReason.RELEASED, {}, entry.entry_id
                )
                for held in [one for one in self.held.values() if entry.token in (one.token, one.placed)]:
                    self._forget(held.placed)

    async def _take_up(self, claim_id: str, token: str, entry_id: str) -> None:
        answer = await self._cell.claims.accept(self.name, claim_id, token, 60, entry_id)
        if answer.outcome not in (Outcome.OK, Outcome.ALREADY_DONE):
            return
        claim = (await self._cell.claims.read([claim_id])).get(claim_id)
        here = claim.at(token) if claim else None
        if here is None:
            return
        held = self.holding(here)
        self.held[held.placed] = held
        await self._cell.claims.confirm(self.name, claim_id, token)

    def holding(self, claim: Claim) -> JournaledClaim:
        """Return a claim as the journal has it once its work runs."""
        placement = next(one for one in claim.placements if one.token == claim.token)
        return JournaledClaim(
            claim.claim_id, claim.token, placement.placed, placement.root, ClaimStatus.ACTIVE, record_of(claim)
        )

    def _forget(self, placed: str) -> None:
        if held := self.held.pop(placed, None):
            self.ended[placed] = EndedPlacement(held.id, held.token, placed)

    def _stamp(self) -> AgentStamp:
        self._number += 1
        return AgentStamp(f"journal-{self.name}", "n1", self._number)


async def fleet(cell: CellStore, capacities: Sequence[int], lease_s: int = 3600) -> list[PlainHost]:
    """Return hosts h0, h1 ... with this much VCPU each, which have reported and attested."""
    found = [PlainHost(cell, f"h{number}", vcpu, lease_s) for number, vcpu in enumerate(capacities)]
    await speak_all(found)
    return found


async def speak_all(hosts: Iterable[PlainHost]) -> None:
    """Let each host report and attest."""
    for host in hosts:
        await host.speak()
