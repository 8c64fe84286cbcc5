"""HostWords: who waits for which hosts to confirm which claims, in one cell.

They hear it from the feed that the mirror reads anyway, so one who waits costs the store one look, and a thousand who
wait are read in one go. What the feed cannot have told (what was before the wait, a snapshot, a host that attested and
brought its claims with it) is read from the claims themselves.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import structlog

from redsched import tasks
from redsched.cache.mirror import CellMirror
from redsched.errors import RedschedError
from redsched.model import OVER, Claim, ClaimStatus, Why
from redsched.store import CellStore, Change

READ_AT_ONCE = 500
AGAIN_AFTER_S = 0.2
_WHY = frozenset(Why)

log = structlog.get_logger(__name__)


class _Wait:
    """One who waits: for all of the claims that are `left`, or the first that is `lost`. `hosts`: where each may be."""

    __slots__ = ("done", "hosts", "left", "lost")

    def __init__(self, hosts: Mapping[str, str]) -> None:
        self.left = set(hosts)
        self.hosts = {claim_id: [host] for claim_id, host in hosts.items()}
        self.lost: dict[str, str] = {}
        self.done = asyncio.Event()

    def is_active(self, claim_id: str) -> None:
        self.left.discard(claim_id)
        if not self.left:
            self.done.set()

    def is_lost(self, claim_id: str, why: str) -> None:
        self.lost[claim_id] = why
        self.done.set()


class HostWords:
    """The waits of one cell. A listener of its mirror."""

    def __init__(self, store: CellStore, mirror: CellMirror) -> None:
        self._store = store
        self._mirror = mirror
        self._waits: dict[str, list[_Wait]] = {}
        """By claim."""
        self._on: dict[str, Counter[str]] = {}
        """The claims that are waited for, by host, and by how many."""
        self._unclear: set[str] = set()
        """Claims that have to be read."""
        self._reading: asyncio.Task[None] | None = None
        self._is_stopped = False
        self.on_pending: Callable[[Claim], None] = lambda _: None
        """Told of a claim that is waited for and needs another placement: it has not to wait for the next sweep."""
        mirror.listeners.append(self)

    async def stop(self) -> None:
        """End what is being read. Who waits goes on until its time is up."""
        self._is_stopped = True
        await tasks.end(self._reading)

    async def wait(self, hosts: Mapping[str, str], within_s: float) -> Mapping[str, str]:
        """Wait for the hosts (by claim) to confirm. Returns those that are not active, with why: none if all are.

        It ends early with the first that never will be.
        """
        one = _Wait(hosts)
        for claim_id, host in hosts.items():
            self._waits.setdefault(claim_id, []).append(one)
            self._on.setdefault(host, Counter())[claim_id] += 1
        self._look_at(hosts)
        try:
            async with asyncio.timeout(within_s):
                await one.done.wait()
        except TimeoutError:
            pass  # what is left is not active, and that is told
        finally:
            self._leave(one)
        waited = f"not confirmed by {{}} within {within_s:g} s"
        return {
            claim_id: one.lost.get(claim_id) or waited.format(one.hosts[claim_id][-1]) for claim_id in sorted(one.left)
        }

    def heard(self, changes: Sequence[Change]) -> None:
        """Entries of the feed: some may be the words that are waited for."""
        for change in changes:
            if change.op == "attest":
                self._look_at(self._on.get(change.name, ()))
                continue
            claim_id = change.fields.get("claim", "")
            for one in self._waits.get(claim_id, ()):
                if change.op == ClaimStatus.ACTIVE:
                    one.is_active(claim_id)
                elif change.op == ClaimStatus.CLAIMED:
                    self._follow(one, claim_id, change.name)
                elif change.op == ClaimStatus.ENDING or change.op in _WHY:
                    self._look_at((claim_id,))  # it may go on elsewhere

    def missed(self) -> None:
        """A snapshot: anything may have been said before it."""
        self._look_at(self._waits)

    def _follow(self, one: _Wait, claim_id: str, host: str) -> None:
        """The claim has another placement: what that host says counts too."""
        if host not in one.hosts[claim_id]:
            one.hosts[claim_id].append(host)
            self._on.setdefault(host, Counter())[claim_id] += 1

    def _leave(self, one: _Wait) -> None:
        for claim_id, hosts in one.hosts.items():
            self._waits[claim_id].remove(one)
            if not self._waits[claim_id]:
                del self._waits[claim_id]
            for host in hosts:
                self._leave_host(claim_id, host)

    def _leave_host(self, claim_id: str, host: str) -> None:
        here = self._on[host]
        here[claim_id] -= 1
        if not here[claim_id]:
            del here[claim_id]
        if not here:
            del self._on[host]

    def _look_at(self, claim_ids: Iterable[str]) -> None:
        self._unclear.update(claim_ids)
        if self._unclear and not self._is_stopped and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._read(), name=f"redsched-host-words-{self._store.name}")

    async def _read(self) -> None:
        while self._unclear:
            batch = [self._unclear.pop() for _ in range(min(READ_AT_ONCE, len(self._unclear)))]
            try:
                found = await self._store.read_claims(batch)
            except RedschedError as error:
                log.warning("host words", cell=self._store.name, problem=error.detail)
                self._unclear.update(batch)
                await asyncio.sleep(AGAIN_AFTER_S)
                continue
            for claim_id in batch:
                self._judge(claim_id, found.get(claim_id))

    def _judge(self, claim_id: str, claim: Claim | None) -> None:
        if claim is not None and claim.state is ClaimStatus.PENDING and claim_id in self._waits:
            self.on_pending(claim)
            # That it ends for want of a host is in no feed: nothing changes for any host.
            asyncio.get_running_loop().call_later(AGAIN_AFTER_S, self._look_at, (claim_id,))
        for one in self._waits.get(claim_id, ()):
            if claim is not None and claim.state is ClaimStatus.ACTIVE:
                one.is_active(claim_id)
            elif claim is not None and claim.state in OVER:
                one.is_lost(claim_id, f"{claim.why or claim.state} on {claim.host}")
            elif claim is None and self._mirror.settled:
                # Until then it may come back with its host.
                one.is_lost(claim_id, "not known any more")
