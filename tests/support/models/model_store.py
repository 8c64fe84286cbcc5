"""A plain model of one cell: hosts, claims and the expected reply of each script, without Redis, time or numpy.

Written from the design and the scripts' headers, and not from their code, so that each can reveal errors of the other.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redsched.model import HostReport

Amounts = Mapping[str, int]
TAKEN_UP = ("starting", "active", "ending")
ENDINGS = ("gone", "fail", "fail_by_host")
"""What a host that was written off may still say about a claim."""


@dataclass
class ModelHost:
    """A host: its agent's report, the operator's status, and whether it has attested."""

    report: HostReport
    status: str = "enabled"
    alive: bool = True
    attested: bool = False
    written_off: bool = False
    lost_before: bool = False
    """The host was written off in an earlier epoch, and has not attested since."""
    is_to_decide: bool = False
    """It was written off although it took claims: once it is back, its status is the operator's again."""
    since: str = ""
    """The epoch of its first report."""
    notifications_sent: int = 0
    external: dict[str, int] = field(default_factory=dict)
    """External usage by slot, from the last report of the host or of the end of a claim's work."""
    reservation: str = ""
    kept: dict[str, int] = field(default_factory=dict)
    """What is kept of each slot for the reservation."""

    @property
    def is_lost(self) -> bool:
        """Whether the host was ever written off, and has not attested since."""
        return (self.written_off or self.lost_before) and not self.attested


@dataclass
class ModelClaim:
    """A claim that was placed at least once."""

    host: str
    token: str
    digest: str
    amounts: Amounts
    state: str = "claimed"
    end_reason: str = ""
    due: bool = False
    is_closed: bool = False
    """Its owner has released it."""
    notification: str = "claim"
    """The notification that its host has not handled: claim, end, or ''."""


class ModelCell:
    """The expected state of one cell."""

    def __init__(self) -> None:
        self.hosts: dict[str, ModelHost] = {}
        self.expected: dict[str, str] = {}
        """The statuses with which hosts will join again."""
        self.claims: dict[str, ModelClaim] = {}
        self.epoch = ""
        self.waiting = 0
        self.settled = True

    # The state of a host

    def live(self, host: str) -> dict[str, ModelClaim]:
        """Return the claims of a host that have not ended."""
        return {id_: one for id_, one in self.claims.items() if one.host == host and one.state != "ended"}

    def claimed(self, host: str) -> Counter[str]:
        """Return the sum over the claims of a host, by slot."""
        total: Counter[str] = Counter()
        for claim in self.live(host).values():
            total.update(claim.amounts)
        return total

    def closed(self, name: str) -> str:
        """Return why a host accepts nothing, whatever the amount; '' if it is open."""
        host = self.hosts.get(name)
        if host is None:
            return "UNKNOWN"
        if not host.attested:
            return "NOT_ATTESTED"
        if not host.alive:
            return "DOWN"
        return {"enabled": "", "draining": "DRAINING"}.get(host.status, "DISABLED")

    def free(self, name: str, slot: str) -> int:
        """Return what is left of a slot."""
        host = self.hosts[name]
        inventory = host.report.inventories.get(slot)
        capacity = 0 if inventory is None else int((inventory.total - inventory.reserved) * inventory.allocation_ratio)
        return max(0, capacity) - self.claimed(name)[slot] - host.external.get(slot, 0) - host.kept.get(slot, 0)

    def slot_takes(self, name: str, slot: str, amount: int) -> bool:
        """Return whether a slot gives out amounts of this size, and has this one left."""
        inventory = self.hosts[name].report.inventories.get(slot)
        if inventory is None:
            return False
        largest = inventory.total if inventory.max_unit is None else inventory.max_unit
        in_units = inventory.min_unit <= amount <= largest and amount % inventory.step_size == 0
        return in_units and amount <= self.free(name, slot)

    def places(self, name: str, amounts: Amounts) -> int:
        """Return how many claims of these amounts a host could accept one after the other."""
        if self.closed(name) or not all(self.slot_takes(name, slot, amount) for slot, amount in amounts.items()):
            return 0
        return min(self.free(name, slot) // amount for slot, amount in amounts.items())

    def fitting(self, amounts: Amounts) -> set[str]:
        """Return the hosts that could accept one claim of these amounts now."""
        return {name for name in self.hosts if self.places(name, amounts)}

    # Placing

    def known_outcome(self, ids: Sequence[str], digest: str, fresh: bool) -> str:
        """Return the outcome that ids alone decide: ALREADY_DONE, ENDED, CONFLICT, SETTLING, or '' if all are new."""
        known = [self.claims[one] for one in ids if one in self.claims]
        if not known:
            return ""
        if any(one.digest != digest for one in known):
            return "CONFLICT"
        if len(known) < len(ids):
            return "CONFLICT" if fresh or self.settled else "SETTLING"
        return "ENDED" if any(one.state in ("ending", "ended") for one in known) else "ALREADY_DONE"

    def place(
        self, members: Sequence[tuple[str, Sequence[tuple[str, Amounts]]]], digest: str
    ) -> list[tuple[str, str]] | None:
        """Put each member on the first candidate that fits: (id, host) of each; None, and no change, if one is left."""
        placed: list[tuple[str, str]] = []
        for claim_id, candidates in members:
            for host, amounts in candidates:
                if not self.closed(host) and all(self.slot_takes(host, *entry) for entry in amounts.items()):
                    self.put(claim_id, host, "", digest, amounts)
                    placed.append((claim_id, host))
                    break
            else:
                for done, host in placed:
                    del self.claims[done]
                    self.hosts[host].notifications_sent -= 1
                return None
        return placed

    def put(self, claim_id: str, host: str, token: str, digest: str, amounts: Amounts) -> None:
        """Add a new claim on a host."""
        self.claims[claim_id] = ModelClaim(host, token, digest, amounts)
        self.hosts[host].notifications_sent += 1

    # Verbs on a claim

    def say(self, verb: str, claim_id: str, host: str, token: str | None) -> str:
        """Execute a verb, and return its outcome. `token` None: any.

        A release is about the claim, wherever it is and whether or not its host has attested. Until it has attested, a
        host that was written off may only end its claims.
        """
        there = self.hosts.get(host)
        claim = self.claims.get(claim_id)
        if claim is not None and verb in ("release", "release_force"):
            if token not in (None, claim.token) and claim.state != "ended":
                return "STALE"
            return self._released(claim, force=verb == "release_force")
        removed = there is None and claim is not None and claim.state == "ended"
        if verb in ("release", "release_force") and claim is not None:
            host, there = claim.host, self.hosts.get(claim.host)
            if claim.state == "ended" and token in (None, claim.token):
                return str(getattr(self, f"_{verb}")(claim))
        if not removed and (there is None or not (there.attested or there.written_off)):
            return "NOT_ATTESTED"
        if claim is None:
            return "UNKNOWN"
        if claim.host != host or token not in (None, claim.token):
            return "STALE"
        if verb not in ENDINGS and claim.state != "ended" and there is not None and not there.attested:
            return "NOT_ATTESTED"
        outcome: str = getattr(self, f"_{verb}")(claim)
        return outcome

    def _accept(self, claim: ModelClaim) -> str:
        if claim.state != "claimed":
            return {"ended": "ENDED", "ending": "ENDING"}.get(claim.state, "ALREADY_DONE")
        claim.state, claim.notification, claim.due = "starting", "", False
        return "OK"

    def _confirm(self, claim: ModelClaim) -> str:
        if claim.state not in ("claimed", "starting"):
            return {"ended": "ENDED", "ending": "ENDING"}.get(claim.state, "ALREADY_DONE")
        claim.state, claim.notification, claim.due = "active", "", False
        return "OK"

    def _renew(self, claim: ModelClaim) -> str:
        if claim.state not in ("claimed", "starting"):
            return {"ended": "ENDED", "ending": "ENDING"}.get(claim.state, "ALREADY_DONE")
        claim.due = False
        return "OK"

    def _fail_by_host(self, claim: ModelClaim) -> str:
        if claim.state == "ended":
            return "ALREADY_DONE"
        return self._end(claim, claim.end_reason if claim.state == "ending" else "failed")

    def _fail(self, claim: ModelClaim) -> str:
        if claim.state == "ended":
            return "ALREADY_DONE" if claim.end_reason == "failed" else "ENDED"
        return self._give_back(claim, "failed")

    def _released(self, claim: ModelClaim, force: bool) -> str:
        if claim.state == "ended":
            if claim.is_closed or not self.waiting:
                return "ALREADY_DONE"
            claim.is_closed, claim.end_reason = True, "released"  # a host may still restore it
            return "OK"
        claim.is_closed = True
        host = self.hosts[claim.host]
        if host.attested:
            return self._end(claim, "released") if force else self._give_back(claim, "released")
        if host.is_lost:
            return self._end(claim, "released")
        if claim.state != "ending":
            claim.state, claim.end_reason, claim.notification, claim.due = "ending", "released", "", False
        return "ENDING"

    def _gone(self, claim: ModelClaim) -> str:
        if claim.state == "ended":
            return "ALREADY_DONE"
        return self._end(claim, claim.end_reason if claim.state == "ending" else "released")

    def _end(self, claim: ModelClaim, end_reason: str) -> str:
        claim.state, claim.end_reason, claim.notification, claim.due = "ended", end_reason, "", False
        return "OK"

    def _give_back(self, claim: ModelClaim, end_reason: str) -> str:
        if claim.state == "claimed" or not self.hosts[claim.host].attested:
            return self._end(claim, end_reason)
        return self._begin_ending(claim, end_reason)

    def _begin_ending(self, claim: ModelClaim, end_reason: str) -> str:
        if claim.state != "ending":
            claim.state, claim.end_reason, claim.notification, claim.due = "ending", end_reason, "end", False
            self.hosts[claim.host].notifications_sent += 1
        return "ENDING"

    def can_be_swept(self) -> list[str]:
        """Return claims with expired leases, on hosts that have attested or were written off."""
        return [id_ for id_, one in self.claims.items() if one.due and self._is_heard(one.host)]

    def sweep(self) -> int:
        """End claims that are due, and ending claims on hosts that were written off."""
        swept = [*self.can_be_swept(), *self._deserted_ends()]
        for claim_id in swept:
            claim = self.claims[claim_id]
            if claim.state == "claimed" or not self.hosts[claim.host].attested:
                self._end(claim, claim.end_reason or "expired")
            else:
                self._begin_ending(claim, "expired")
        return len(swept)

    def _is_heard(self, name: str) -> bool:
        return self.hosts[name].attested or self.hosts[name].written_off

    def _deserted_ends(self) -> list[str]:
        ending = {id_: self.hosts[one.host] for id_, one in self.claims.items() if one.state == "ending"}
        return [id_ for id_, host in ending.items() if host.is_lost]

    # Calls about a host

    def reported(self, report: HostReport) -> None:
        """Replace the host's previous report."""
        if report.name not in self.hosts:
            status = self.expected.pop(report.name, "enabled")
            self.hosts[report.name] = ModelHost(report, status, since=self.epoch)
        host = self.hosts[report.name]
        host.report, host.external, host.alive = report, dict(report.external), True

    def attest(self, name: str) -> str:
        """Attest with a correct journal: the host holds the claims that it had accepted."""
        host = self.hosts.get(name)
        if host is None:
            return "UNKNOWN"
        if host.attested:
            return "ALREADY_DONE"
        if not host.written_off:
            self._heard(host)
        host.attested, host.alive, host.lost_before = True, True, False
        for claim in self.live(name).values():
            claim.due = False
            if claim.state in ("claimed", "ending"):
                claim.notification = "claim" if claim.state == "claimed" else "end"
                host.notifications_sent += 1
        return "OK"

    def lose(self, name: str, force: bool) -> str:
        """Write the host off, as the operator."""
        host = self.hosts.get(name)
        if host is None:
            return "UNKNOWN"
        if host.written_off and not host.attested:
            return "ALREADY_DONE"
        if host.alive and not force:
            return "ALIVE"
        if not (host.attested or host.written_off):
            self._heard(host)
        host.is_to_decide |= not host.is_lost and host.status != "disabled"
        host.status, host.alive, host.attested, host.written_off = "disabled", False, False, True
        return "OK"

    def forget(self, name: str, force: bool) -> str:
        """Remove the host, as the operator."""
        host = self.hosts.get(name)
        if host is None:
            return "OK" if self.expected.pop(name, "") else "UNKNOWN"
        if self.live(name) and not force:
            return "IN_USE"
        if host.alive and not force:
            return "ALIVE"
        for claim in self.live(name).values():
            self._end(claim, claim.end_reason if claim.state == "ending" else "void")
        if not (host.attested or host.written_off):
            self._heard(host)
        if host.alive and host.status != "enabled":
            self.expected[name] = "disabled"
        del self.hosts[name]
        return "OK"

    def set_status(self, name: str, status: str) -> str:
        """Set the status of a host, as the operator."""
        host = self.hosts.get(name)
        if host is None:
            return "OK" if status == "enabled" and self.expected.pop(name, "") else "UNKNOWN"
        decides = host.is_to_decide and (status == "enabled" or not host.is_lost)
        if host.status == status and not decides:
            return "ALREADY_DONE"
        host.status, host.is_to_decide = status, host.is_to_decide and not decides
        return "OK"

    def new_epoch(self, epoch: str) -> None:
        """Mark all hosts as unattested."""
        self.epoch, self.waiting = epoch, len(self.hosts)
        self.settled = not self.waiting
        for host in self.hosts.values():
            host.lost_before = host.is_lost
            host.attested = host.written_off = False

    def _heard(self, host: ModelHost) -> None:
        """Count a host as attested, unless it first reported after the epoch began."""
        if host.since != self.epoch and self.waiting:
            self.waiting -= 1
            self.settled = self.settled or not self.waiting
