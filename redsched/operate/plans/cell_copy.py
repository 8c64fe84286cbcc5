"""A copy of a cell in memory, on which plans are tried: its columns, its claims and their requests.

Unlike an overlay of a decision, changes are those of the columns themselves, so that the decider decides as it does on
the running cell, with its caches. Each change is noted, and can be undone.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from random import Random

from redsched.cache.columns import Columns
from redsched.decide.affinity import counted_in_group
from redsched.decide.decider import Decider
from redsched.decide.plugins.registry import PluginRegistry
from redsched.decide.result import Decision, Place
from redsched.errors import ClaimState
from redsched.model import ENDING_OR_ENDED, HELD, LEASED, Amounts, Candidate, Claim, ClaimStatus, Placement, Request
from redsched.model.records.problems import ClaimStateFacts
from redsched.model.validation import SHARED_POOL, split_slot
from redsched.settings import Settings
from redsched.store.codec.fields import WRITTEN_OFF
from redsched.store.codec.keys import Kind

_STATUSES = ("enabled", "disabled", "draining")


class CellCopy:
    """One cell. `claims` are by id, each at its main placement; `requests` are their requests by digest, as JSON.

    `unready` are the gangs that are not active yet. The best host is always the first choice, so that equal copies
    give equal plans. A copy changes the columns that it is given.
    """

    def __init__(
        self,
        cell: str,
        columns: Columns,
        settings: Settings,
        plugins: PluginRegistry,
        claims: Mapping[str, Claim],
        requests: Mapping[str, str],
        unready: Iterable[str] = (),
    ) -> None:
        self.cell = cell
        self.columns = columns
        self.settings = settings.model_copy(update={"pick_from": 1})
        self.decider = Decider(columns, self.settings, plugins)
        self.plugins = plugins
        self.claims = dict(claims)
        self.unready = frozenset(unready)
        self._texts = requests
        self._requests: dict[str, Request] = {}
        self.alone: dict[Hashable, Request] = {}
        """The requests for single claims, which many claims share."""
        self.rng = Random(0)
        self._undo: list[Callable[[], None]] = []
        self._on_host = _by_host(self.claims.values())

    # Reading

    def decide(self, request: Request) -> Decision:
        """Return the decision on a request. Raises InvalidRequest, TooMuchWork."""
        return self.decider.decide(request, self.rng)

    def request_of(self, claim: Claim) -> Request:
        """Return the request from which a claim was made. Raises ClaimState if it is not known."""
        text = self._texts.get(claim.digest)
        if text is None:
            raise ClaimState(
                f"the request of claim {claim.claim_id} is not known: it has expired, or the claim was made by its "
                "host",
                ClaimStateFacts(claim_id=claim.claim_id),
            )
        found = self._requests.get(claim.digest)
        if found is None:
            found = self._requests[claim.digest] = Request.from_canonical(text)
        return found

    def knows_request_of(self, claim: Claim) -> bool:
        """Return whether the request from which a claim was made is known."""
        return claim.digest in self._texts

    def on_host(self, host: str) -> list[Claim]:
        """Return the claims with a placement on a host, each as seen there, the largest first."""
        views = (self.claims[one].on(host) for one in self._on_host.get(host, ()))
        return sorted((one for one in views if one is not None), key=lambda one: (-_size(one.slots), one.claim_id))

    def pending(self) -> list[Claim]:
        """Return the claims that wait for a place, the oldest first."""
        found = (one for one in self.claims.values() if one.state is ClaimStatus.PENDING)
        return sorted(found, key=lambda one: (one.claimed_at_ms or 0, one.claim_id))

    # Changes

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Undo all changes made inside the context at its end."""
        mark = len(self._undo)
        try:
            yield
        finally:
            self.undo_to(mark)

    @property
    def mark(self) -> int:
        """A position to which `undo_to` can return."""
        return len(self._undo)

    def undo_to(self, mark: int) -> None:
        """Undo the changes since a mark."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def take(self, place: Place) -> None:
        """Claim a decision's place for new work, which counts as active."""
        chosen = place.chosen
        group = place.group if place.group in self.columns.declared.groups else ""
        self._count(chosen.host, chosen.amounts, group, self._domains(chosen.host, group), 1)

    def take_many(self, whole: Candidate, places: int) -> None:
        """Claim so many places on a host for new work; `whole` has the amounts of all of them together."""
        self._count(whole.host, whole.amounts, "", {}, 1)
        self._add_claims(whole.host, places - 1)
        self._undo.append(lambda: self._add_claims(whole.host, 1 - places))

    def _add_claims(self, host: str, number: int) -> None:
        row = self.columns.row(host)
        if row is not None:
            self.columns.claims[row] += number
            self.columns.dirty.mark(row)

    def move(self, claim: Claim, place: Place) -> Claim:
        """Give a claim another place, as a view shows it at the place that it leaves. Returns it at the new place.

        For a moment it holds both places, as a real move does. A claim without a placement holds nothing before.
        """
        chosen = place.chosen
        group = claim.server_group if claim.server_group in self.columns.declared.groups else ""
        domains = self._domains(chosen.host, group)
        self._count(chosen.host, chosen.amounts, group, domains, 1)
        if claim.state in HELD:
            self.end(claim)
        moved = _at(self.claims[claim.claim_id], chosen, domains)
        self._put(moved)
        return moved

    def end(self, claim: Claim) -> None:
        """End a claim at the placement that a view shows."""
        group = claim.server_group if claim.server_group in self.columns.declared.groups else ""
        amounts = {slot: amount for slot, amount in claim.slots.items() if self._has_column(slot)}
        self._count(claim.host, amounts, group, claim.counted, -1, claim.state in LEASED)
        rest = tuple(one for one in self.claims[claim.claim_id].placements if one.token != claim.token)
        self._put(replace(self.claims[claim.claim_id], placements=rest))

    def close(self, host: str, gone: bool = False) -> None:
        """Let a host take nothing more: it is being drained, or, with `gone`, written off. Does nothing if unknown."""
        columns, row = self.columns, self.columns.row(host)
        if row is None:
            return
        before = {
            "status": _STATUSES[columns.status.item(row)],
            "epoch": columns.epochs.text(row),
            "alive": str(int(columns.alive.item(row))),
        }
        after = {"status": "disabled", "epoch": WRITTEN_OFF, "alive": "0"} if gone else {"status": "draining"}
        columns.patch(host, after)
        self._undo.append(lambda: columns.patch(host, before))

    def add(self, host: str, fields: Mapping[str, str]) -> None:
        """Add a host with these fields of its hash."""
        self.columns.put(host, fields)
        self._undo.append(lambda: self.columns.remove(host))

    # Counting

    def _domains(self, host: str, group: str) -> dict[str, str]:
        """Return the zone and label values of a host under which a group counts a claim there."""
        row = self.columns.row(host)
        topologies = counted_in_group(group, self.columns).get(group, ())
        return {} if row is None else {by: self.columns.domain(by, row) for by in topologies if by != "host"}

    def _has_column(self, slot: str) -> bool:
        pool = split_slot(slot)[0]
        return not pool.startswith(SHARED_POOL) or pool.removeprefix(SHARED_POOL) in self.columns.declared.pools

    def _count(
        self, host: str, amounts: Amounts, group: str, domains: Mapping[str, str], sign: int, starting: bool = False
    ) -> None:
        self._add(host, amounts, group, domains, sign, starting)
        self._undo.append(lambda: self._add(host, amounts, group, domains, -sign, starting))

    def _add(
        self, host: str, amounts: Amounts, group: str, domains: Mapping[str, str], sign: int, starting: bool
    ) -> None:
        columns, row = self.columns, self.columns.row(host)
        for slot, amount in amounts.items():
            if slot.startswith(SHARED_POOL):
                pool, resource_class = split_slot(slot)
                columns.declared.take(pool.removeprefix(SHARED_POOL), resource_class, sign * amount)
            elif row is not None:
                columns.claimed.set(slot, row, columns.claimed[slot].item(row) + sign * amount)
        if row is not None:
            columns.claims[row] += sign
            columns.starting[row] += sign * starting
            columns.dirty.mark(row)
        if group:
            columns.declared.place(group, host, domains, sign)

    def _put(self, claim: Claim) -> None:
        before = self.claims[claim.claim_id]
        self._set(before, claim)
        self._undo.append(lambda: self._set(claim, before))

    def _set(self, before: Claim, after: Claim) -> None:
        for host in before.hosts:
            self._on_host.get(host, {}).pop(after.claim_id, None)
        for host in after.hosts:
            self._on_host.setdefault(host, {})[after.claim_id] = None
        self.claims[after.claim_id] = after


def _by_host(claims: Iterable[Claim]) -> dict[str, dict[str, None]]:
    """Return the ids of the claims with a placement on each host."""
    found: dict[str, dict[str, None]] = {}
    for claim in claims:
        for host in claim.hosts:
            found.setdefault(host, {})[claim.claim_id] = None
    return found


def _at(claim: Claim, chosen: Candidate, counted: Mapping[str, str]) -> Claim:
    """Return a claim that runs at its new place alone."""
    place = Placement(
        placed=claim.token,
        token=claim.token,
        root=claim.token,
        host=chosen.host,
        state=ClaimStatus.ACTIVE,
        slots=chosen.amounts,
        counted=counted,
    )
    others = tuple(one for one in claim.placements if one.state in ENDING_OR_ENDED)
    return replace(claim, placements=(place, *others), closed="", raw={}).view(place)


def _size(amounts: Amounts) -> int:
    return sum(amounts.values())


def free_by_class(columns: Columns) -> dict[str, tuple[int, int]]:
    """Return the capacity and the free amount of each class, on hosts that take claims and in shared pools."""
    usable = columns.present & columns.alive & columns.attested & (columns.status == 0)
    capacity, free = Counter[str](), Counter[str]()
    for slot in columns.capacity:
        resource_class = split_slot(slot)[1]
        whole = columns.capacity[slot][usable]
        left = whole - columns.claimed[slot][usable] - columns.external[slot][usable]
        capacity[resource_class] += int(whole.sum())
        free[resource_class] += int(left[left > 0].sum())
    for name in columns.declared.names(Kind.POOL):
        for resource_class, slot_state in columns.declared.pools[name].slots.items():
            capacity[resource_class] += slot_state.capacity
            free[resource_class] += max(0, slot_state.capacity - slot_state.claimed - slot_state.external)
    return {name: (amount, free[name]) for name, amount in sorted(capacity.items()) if amount}
