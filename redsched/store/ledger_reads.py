"""Reading ledgers: how they stand, and for audits all that lies under their keys."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redsched.model import Amounts
from redsched.names import whole
from redsched.pacing import Spread, in_order, paced
from redsched.store.base import CLAIMS_AT_ONCE, chunks
from redsched.store.connection import reading
from redsched.store.fields import AMOUNT, LIMIT
from redsched.store.keys import LEDGERS, LedgerKeys
from redsched.store.runner import Runner

USED = "used."
FREED = "freed"


@dataclass(frozen=True, slots=True)
class LedgerState:
    """A ledger as it stands. `epochs`: those of the cells that it was counted in; '' in `counted_in`: it is not."""

    limits: Amounts
    used: Amounts
    counted_in: str
    epochs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What a ledger says of one id. `until_ms`: when its lease ends, on the ledger's clock; None where none runs."""

    state: str
    amounts: Amounts
    until_ms: int | None


class LedgerReads:
    """Reads of ledgers. Raises StoreUnavailable."""

    def __init__(self, url: str, runner: Runner, reader: Any) -> None:
        self._url = url
        self._runner = runner
        self._reader = reader

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
        for part in chunks(projects):
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
        for part in chunks(projects):
            pipe = self._reader.pipeline(transaction=False)
            for project in part:
                pipe.hgetall(LedgerKeys(project).ledger)
            with reading(self._url):
                hashes = await pipe.execute()
            found.update((project, _state(fields)) for project, fields in zip(part, hashes, strict=True) if fields)
        return found

    async def all_ids(self) -> dict[str, Collection[str]]:
        """The ids of all entries of each project that has any key of a ledger. Walks the keys: for audits only."""
        found = defaultdict[str, Spread[bool]](Spread)
        with reading(self._url):
            async for key in self._reader.scan_iter(match=f"{LEDGERS}*", count=1000):
                project, _, rest = key[len(LEDGERS) :].partition("}")
                kind, _, claim_id = rest.removeprefix(":").partition(":")
                entries = found[project]
                if kind == "claim":
                    entries[claim_id] = True
        return dict(found)

    async def entries(self, project: str, ids: Iterable[str]) -> Spread[LedgerEntry]:
        """What a ledger says of these ids; those of which it says nothing are left out."""
        keys, found = LedgerKeys(project), Spread[LedgerEntry]()
        with reading(self._url):
            due = dict(await self._reader.zrange(keys.deadlines, 0, -1, withscores=True))
        for part in chunks(await in_order(ids), CLAIMS_AT_ONCE):
            pipe = self._reader.pipeline(transaction=False)
            for one in part:
                pipe.hgetall(keys.claim(one))
            with reading(self._url):
                hashes = await pipe.execute()
            async for one, fields in paced(zip(part, hashes, strict=True)):
                if fields:
                    found[one] = _entry(fields, due.get(one))
        return found

    async def remains(self, project: str, ids: Iterable[str]) -> bool:
        """Whether there is more of a ledger than ids that are remembered as freed."""
        keys = LedgerKeys(project)
        pipe = self._reader.pipeline(transaction=False)
        for key in keys.head:
            pipe.exists(key)
        with reading(self._url):
            heads = await pipe.execute()
        if any(heads):
            return True
        async for one in paced((await self.entries(project, ids)).values()):
            if one.state != FREED:
                return True
        return False


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
