"""Ledgers: what the claims of each project take of its quota. They lie outside every cell, each under its own hash tag.

quota_reserve before claims are made, quota_hold with what they really take; quota_open, quota_count and quota_close to
count a ledger anew from the cells; quota_declare and quota_drop for the quota itself; quota_mend for audits.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from redsched.errors import StoreUnavailable
from redsched.model import Amounts
from redsched.names import whole
from redsched.store.answers import Answer
from redsched.store.base import MOST_TRIES, as_answer, flat
from redsched.store.connection import reading
from redsched.store.fields import AMOUNT, LIMIT
from redsched.store.keys import LEDGERS, LedgerKeys
from redsched.store.outcomes import Outcome
from redsched.store.runner import Runner

CHUNK = 500
USED = "used."

Epochs = Mapping[str, str]
"""The present epoch of each cell, by its name."""


@dataclass(frozen=True, slots=True)
class Taking:
    """What is taken under one id of a ledger, by class and `claims`; for which claim and in which cell ('': as it is).

    Amounts of nothing: that it has ended.
    """

    id: str
    amounts: Amounts = field(default_factory=dict)
    claim: str = ""
    cell: str = ""


@dataclass(frozen=True, slots=True)
class LedgerState:
    """A ledger as it stands. `epochs`: those of the cells that it was counted in; '' in `counted_in`: it is not."""

    limits: Amounts
    used: Amounts
    counted_in: str
    epochs: Epochs


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What a ledger says of one id. `until_ms`: when its lease ends, on the ledger's clock; None where none runs."""

    state: str
    amounts: Amounts
    until_ms: int | None


class Ledgers:
    """One coroutine for each script about a ledger, and reads of them. Raises StoreUnavailable, OutcomeUnknown."""

    def __init__(self, url: str, runner: Runner, reader: Any) -> None:
        self._url = url
        self._runner = runner
        self._reader = reader

    async def declare(self, project: str, token: str, limits: Amounts) -> Answer:
        """Change the limits. OK | SAME (it holds these or later ones) | UNKNOWN. (quota_declare.lua)

        `token`: epoch and version of the declaration in the first cell.
        """
        return await self._run("quota_declare", project, (), (token, *_limits(limits)))

    async def reserve(self, project: str, by: str, takings: Sequence[Taking], lease_ms: int, epochs: Epochs) -> Answer:
        """Take amounts, all within the limits or none. (quota_reserve.lua)

        OK | SAME (facts: claim and cell of each) | OVER (facts: class, limit, used, asked of each that is exceeded) |
        LATE | SETTLING | UNKNOWN. `by` names this very call.
        """
        arguments = chain.from_iterable((one.id, one.claim, one.cell, *_amounts(one)) for one in takings)
        ids = [one.id for one in takings]
        return await self._run("quota_reserve", project, ids, (by, lease_ms, *_epochs(epochs), *arguments))

    async def hold(self, project: str, by: str, takings: Sequence[Taking]) -> Answer:
        """Say what claims really take. OK (facts: ids that are another's by now) | SETTLING | UNKNOWN. (quota_hold.lua)

        `by`: the call that reserved them.
        """
        arguments = chain.from_iterable((one.id, *_amounts(one)) for one in takings)
        return await self._run("quota_hold", project, [one.id for one in takings], (by, *arguments))

    async def open(
        self, project: str, count: str, lease_ms: int, epochs: Epochs, token: str, limits: Amounts
    ) -> Answer:
        """Begin to count anew. OK | SAME (it has been counted in these epochs) | OTHER (a count runs). (quota_open.lua)

        `count` names this very count; `token` as in `declare`.
        """
        arguments = (count, lease_ms, *_epochs(epochs), token, *_limits(limits))
        return await self._run("quota_open", project, (), arguments)

    async def count(self, project: str, count: str, lease_ms: int, takings: Sequence[Taking]) -> Answer:
        """What a running count has found of some ids. OK | STALE (it does not run any more). (quota_count.lua)"""
        answer = None
        for part in _chunks(takings):
            arguments = chain.from_iterable((one.id, one.claim, one.cell, *_amounts(one)) for one in part)
            ids = [one.id for one in part]
            answer = await self._run("quota_count", project, ids, (count, lease_ms, *arguments))
            if answer.outcome != "OK":
                break
        assert answer is not None  # there is always one part
        return answer

    async def close(self, project: str, count: str, epochs: Epochs) -> Answer:
        """End a count: the ledger can be relied on. OK | SAME | STALE. (quota_close.lua)"""
        return await self._run("quota_close", project, (), (count, *_epochs(epochs)))

    async def mend(self, project: str, ids: Iterable[str], write: bool) -> Answer:
        """Hold sums, list and deadlines to the entries; `write`: put right what differs. OK | SETTLING | UNKNOWN.

        Facts: kind, id or class, found, should of each fault. `ids`: those that are known of. (quota_mend.lua)
        """
        known = set(ids) | await self.ids(project)
        for _ in range(MOST_TRIES):
            named = sorted(known)
            answer = await self._run("quota_mend", project, named, (int(write), *named))
            if answer.outcome is not Outcome.RETRY:
                return answer
            known |= set(answer.facts)
        raise StoreUnavailable(f"the ledger of {project} changes faster than it can be read: try again")

    async def drop(self, project: str, ids: Iterable[str] = ()) -> None:
        """Forget a ledger: it is counted anew, if the project has a quota. (quota_drop.lua)

        `ids`: of entries that it may have beside those it lists.
        """
        keys = LedgerKeys(project)
        for part in _chunks(sorted(await self.ids(project) | set(ids))):
            await self._runner.run("quota_drop", (*keys.head, *map(keys.claim, part)), ())

    async def ids(self, project: str) -> set[str]:
        """The ids under which something is taken."""
        with reading(self._url):
            return set(await self._reader.smembers(LedgerKeys(project).claims))

    async def known(self, project: str, ids: Collection[str]) -> set[str]:
        """Those of the ids under which something is taken."""
        keys, wanted = LedgerKeys(project), list(ids)
        pipe = self._reader.pipeline(transaction=False)
        for one in wanted:
            pipe.hget(keys.claim(one), "state")
        with reading(self._url):
            states = await pipe.execute()
        return {one for one, state in zip(wanted, states, strict=True) if state in ("reserved", "held")}

    async def due(self, projects: Sequence[str], now_ms: int, most: int) -> dict[str, list[str]]:
        """Ids whose reservation has run out, oldest first, by project; those without any are left out."""
        found: dict[str, list[str]] = {}
        for part in _chunks(projects):
            pipe = self._reader.pipeline(transaction=False)
            for project in part:
                pipe.zrange(LedgerKeys(project).deadlines, "-inf", str(now_ms), byscore=True, offset=0, num=most)
            with reading(self._url):
                due = await pipe.execute()
            found.update((project, ids) for project, ids in zip(part, due, strict=True) if ids)
        return found

    async def read(self, projects: Sequence[str]) -> dict[str, LedgerState]:
        """Ledgers by project; those that are not there are left out."""
        found: dict[str, LedgerState] = {}
        for part in _chunks(projects):
            pipe = self._reader.pipeline(transaction=False)
            for project in part:
                pipe.hgetall(LedgerKeys(project).ledger)
            with reading(self._url):
                hashes = await pipe.execute()
            found.update((project, _state(fields)) for project, fields in zip(part, hashes, strict=True) if fields)
        return found

    async def all_ids(self) -> dict[str, set[str]]:
        """The ids of all entries of each project that has any key of a ledger. Walks the keys: for audits only."""
        found: dict[str, set[str]] = {}
        with reading(self._url):
            async for key in self._reader.scan_iter(match=f"{LEDGERS}*", count=1000):
                project, _, rest = key[len(LEDGERS) :].partition("}")
                kind, _, claim_id = rest.removeprefix(":").partition(":")
                found.setdefault(project, set()).update([claim_id] if kind == "claim" else ())
        return found

    async def entries(self, project: str, ids: Iterable[str]) -> dict[str, LedgerEntry]:
        """What a ledger says of these ids; those of which it says nothing are left out."""
        keys, found = LedgerKeys(project), dict[str, LedgerEntry]()
        with reading(self._url):
            due = dict(await self._reader.zrange(keys.deadlines, 0, -1, withscores=True))
        for part in _chunks(sorted(ids)):
            pipe = self._reader.pipeline(transaction=False)
            for one in part:
                pipe.hgetall(keys.claim(one))
            with reading(self._url):
                hashes = await pipe.execute()
            found.update(
                (one, _entry(fields, due.get(one))) for one, fields in zip(part, hashes, strict=True) if fields
            )
        return found

    async def _run(self, script: str, project: str, ids: Iterable[str], arguments: Sequence[str | int]) -> Answer:
        keys = LedgerKeys(project)
        return as_answer(await self._runner.run(script, (*keys.head, *map(keys.claim, ids)), arguments))


def _amounts(taking: Taking) -> tuple[str | int, ...]:
    return (len(taking.amounts), *flat(taking.amounts))


def _epochs(epochs: Epochs) -> tuple[str | int, ...]:
    return (len(epochs), *flat(epochs))


def _limits(limits: Amounts) -> list[str | int]:
    return flat((f"{LIMIT}{name}", limit) for name, limit in limits.items())


def _state(fields: Mapping[str, str]) -> LedgerState:
    def under(prefix: str) -> dict[str, str]:
        return {name[len(prefix) :]: value for name, value in fields.items() if name.startswith(prefix)}

    # What somebody has made unreadable by hand lets nothing in, as in the scripts.
    limits, used = under(LIMIT), under(USED)
    return LedgerState(
        {name: whole(value, 0) for name, value in limits.items()},
        {name: whole(value, 0) for name, value in used.items()},
        fields.get("counted_in", ""),
        under("epoch."),
    )


def _entry(fields: Mapping[str, str], until_ms: float | None) -> LedgerEntry:
    amounts = {name[len(AMOUNT) :]: whole(value, 0) for name, value in fields.items() if name.startswith(AMOUNT)}
    return LedgerEntry(fields.get("state", ""), amounts, None if until_ms is None else int(until_ms))


def _chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """At least one."""
    return (items[first : first + CHUNK] for first in range(0, max(1, len(items)), CHUNK))
