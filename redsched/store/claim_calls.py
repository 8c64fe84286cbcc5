"""Scripts about claims: claim, accept, confirm, renew, fail, release, gone, expire."""

from collections.abc import Iterator, Mapping, Sequence

from redsched.model import ClaimStatus, Why
from redsched.store.answers import Answer, ClaimAnswer, ClaimCall, LookedAt, Placed
from redsched.store.base import flat
from redsched.store.outcomes import Outcome
from redsched.store.reads import Reads
from redsched.store.runner import Reply


class ClaimCalls(Reads):
    """One coroutine for each script whose subject is a claim."""

    async def claim(self, call: ClaimCall) -> ClaimAnswer:
        """Place every member on the first of its candidates that fits now, or none of them. (claim.lua)"""
        hosts = list(dict.fromkeys(one.host for member in call.members for one in member.candidates))
        keys = [self.keys.deadlines, *(self.keys.claim(member.id) for member in call.members)]
        for host in hosts:
            keys += (self.keys.host(host), self.keys.claims(host), self.keys.inbox(host))
        return _claim_answer(await self._run("claim", keys, _claim_arguments(call, hosts)), hosts)

    async def bind(self, claim_id: str, former: str, kept_ms: int) -> str:
        """Bind a caller's id to this cell unless it is bound to another than `former`; its cell now. (bind.lua)"""
        reply = await self._runner.run("bind", (self.keys.binding(claim_id),), (self.name, former, kept_ms))
        return str(reply[1])

    async def void(self, claim_id: str, digest: str) -> Answer:
        """Close this cell to an id that moves on. OK | SAME | CONFLICT (it has an outcome here). (void.lua)"""
        return await self._answer("void", (self.keys.claim(claim_id),), (digest,))

    async def accept(self, host: str, claim_id: str, token: str, lease_s: int, entry_id: str = "") -> Answer:
        """The host takes it up. OK | SAME | ENDING | GONE | STALE | UNKNOWN | ATTEST; facts: state. (accept.lua)"""
        return await self._about("accept", host, claim_id, token, lease_s * 1000, entry_id)

    async def confirm(self, host: str, claim_id: str, token: str) -> Answer:
        """The work runs. OK | SAME | ENDING | GONE | STALE | UNKNOWN | ATTEST. (confirm.lua)"""
        return await self._about("confirm", host, claim_id, token)

    async def renew(self, host: str, claim_id: str, token: str, lease_s: int) -> Answer:
        """A fresh lease. OK (facts: expires_at_ms) | SAME | ENDING | GONE | STALE | UNKNOWN | ATTEST. (renew.lua)"""
        return await self._about("renew", host, claim_id, token, lease_s * 1000)

    async def fail(self, host: str, claim_id: str, token: str, by_host: bool) -> Answer:
        """The work could not be started. OK | ENDING | SAME | GONE | STALE | UNKNOWN | ATTEST. (fail.lua)"""
        return await self._about("fail", host, claim_id, token, int(by_host))

    async def release(self, host: str, claim_id: str, token: str = "", force: bool = False) -> Answer:
        """The owner gives it back. OK | ENDING | SAME | STALE | UNKNOWN | ATTEST. (release.lua)"""
        return await self._about("release", host, claim_id, token, int(force))

    async def gone(
        self, host: str, claim_id: str, token: str, why: Why, external: Mapping[str, int], entry_id: str = ""
    ) -> Answer:
        """The host's word that the work has ended, with its new external usage. OK | SAME | STALE | UNKNOWN | ATTEST.

        (gone.lua)
        """
        return await self._about("gone", host, claim_id, token, why.value, entry_id, *flat(external))

    async def expire(self, due: Sequence[tuple[str, str]]) -> int:
        """End those of the claims (id, host) whose lease has run out; the number expired. (expire.lua)"""
        keys = [self.keys.deadlines]
        for claim_id, host in due:
            keys += self._claim_keys(host, claim_id)
        reply = await self._run("expire", keys, flat(due))
        return int(reply[3])

    async def _about(self, script: str, host: str, claim_id: str, token: str, *arguments: str | int) -> Answer:
        keys = (self.keys.deadlines, *self._claim_keys(host, claim_id))
        return await self._answer(script, keys, (host, claim_id, token, *arguments))

    def _claim_keys(self, host: str, claim_id: str) -> tuple[str, str, str, str]:
        return (self.keys.claim(claim_id), self.keys.host(host), self.keys.claims(host), self.keys.inbox(host))


def _claim_arguments(call: ClaimCall, hosts: Sequence[str]) -> list[str | int]:
    """ARGV of claim.lua. Equal amounts are listed once, for most candidates take the same."""
    number_of = {host: number for number, host in enumerate(hosts, 1)}
    lists: dict[tuple[tuple[str, int], ...], int] = {}
    members: list[str | int] = []
    for member in call.members:
        members += (member.id, len(member.candidates))
        for one in member.candidates:
            members += (number_of[one.host], lists.setdefault(tuple(one.amounts.items()), len(lists) + 1))
    arguments: list[str | int] = [call.epoch, call.now_ms, int(call.fresh), call.lease_ms, call.digest]
    arguments += (call.project, call.consumer, len(call.members), len(hosts), len(lists), *hosts)
    for amounts in lists:
        arguments += (len(amounts), *flat(amounts))
    return arguments + members


def _claim_answer(reply: Reply, hosts: Sequence[str]) -> ClaimAnswer:
    outcome = Outcome(reply[0])
    rest = iter(reply[3:])
    placed: tuple[Placed, ...] = ()
    looked_at: tuple[LookedAt, ...] = ()
    if outcome in (Outcome.OK, Outcome.SAME):
        placed = tuple(_placed(rest) for _ in range(int(next(rest))))
    if outcome is Outcome.FULL:
        next(rest)
    if outcome in (Outcome.OK, Outcome.FULL):
        looked_at = tuple(_looked_at(rest, number, hosts) for number in rest)
    return ClaimAnswer(outcome, reply[1], int(reply[2]), placed, looked_at)


def _placed(rest: Iterator[str]) -> Placed:
    host, token, expires, state = next(rest), next(rest), next(rest), next(rest)
    return Placed(host, token, ClaimStatus(state), int(expires) if expires else None)


def _looked_at(rest: Iterator[str | int], number: str | int, hosts: Sequence[str]) -> LookedAt:
    version, cause, length = int(next(rest)), str(next(rest)), int(next(rest))
    claimed = {str(next(rest)): int(next(rest)) for _ in range(length)}
    return LookedAt(hosts[int(number) - 1], version, cause, claimed)
