"""The store beside a plain model of claims that succeed each other: every key of them, what is left to do, the feed."""

from collections import Counter, defaultdict
from typing import Any

from redsched.scheduler.taken import usage_of
from redsched.store import CellStore
from redsched.store.keys import Keys
from tests.support.model_life import LEASED, Life
from tests.support.model_succession import Successions

FIELDS = ("state", "host", "token", "why", "origin", "former", "former_why", "next", "gang", "resized_from")
FLAGS = ("arrived", "fell", "final")


class Comparison:
    """Looks at a cell after each step. Reads the feed from where it was last."""

    def __init__(self, cell: CellStore, raw: Any, model: Successions) -> None:
        self._keys: Keys = cell.keys
        self._raw = raw
        self._model = model
        self._entry = "0-0"
        self._seq: int | None = None
        self._versions: dict[tuple[str, str], int] = {}

    async def all(self) -> None:
        """Compare everything."""
        keys, pipe = self._keys, self._raw.pipeline(transaction=False)
        for claim_id in self._model.claims:
            pipe.hgetall(keys.claim(claim_id))
            pipe.pttl(keys.claim(claim_id))
        for name in self._model.hosts:
            pipe.hgetall(keys.host(name))
            pipe.smembers(keys.claims(name))
            pipe.xrange(keys.inbox(name))
        for gang in self._model.claims:
            pipe.hgetall(keys.gang(gang))
        for name in (keys.deadlines, keys.chores):
            pipe.zrange(name, 0, -1)
        pipe.hgetall(keys.quota("project"))
        pipe.smembers(keys.shelved)
        pipe.xrange(keys.changes, f"({self._entry}")
        found = iter(await pipe.execute())
        hashes = [(next(found), next(found)) for _ in self._model.claims]
        ends = {
            one.id: self._claim(one, *claim) for one, claim in zip(self._model.claims.values(), hashes, strict=True)
        }
        versions = {name: self._host(name, next(found), next(found), next(found)) for name in self._model.hosts}
        for gang in self._model.claims:
            self._gang(gang, next(found))
        lists = (set(next(found)), set(next(found)))
        self._quota(next(found), hashes)
        self._lists(*lists, set(next(found)), ends)
        self._feed(next(found), versions)
        self._one_of_each_line()

    def _claim(self, claim: Life, fields: dict[str, str], end_ms: int) -> int:
        expected = {name: getattr(claim, name) for name in FIELDS}
        expected["why"] = claim.why if claim.state in ("ending", "ended") else ""
        assert {name: fields.get(name, "") for name in FIELDS} == expected, claim.id
        flags = {name: getattr(claim, name) for name in FLAGS} | {"by_ms": bool(claim.by)}
        if claim.state == "ended":
            flags.pop("by_ms")
        assert {name: name in fields for name in flags} == flags, claim.id
        for prefix, amounts in (("amount.", claim.amounts), ("wanted.", claim.wanted)):
            held = {name[len(prefix) :]: int(value) for name, value in fields.items() if name.startswith(prefix)}
            assert held == amounts, (claim.id, prefix)
        assert ("expires_at_ms" in fields) == (claim.state in LEASED), claim.id
        return end_ms

    def _host(self, name: str, fields: dict[str, str], ids: set[str], inbox: list[Any]) -> int:
        live = {one.id: one for one in self._model.on(name)}
        assert ids == set(live)
        sums = self._model.sums(name)
        names = ("claims", "starting", "claimed.")
        counted = {key: int(value) for key, value in fields.items() if key.startswith(names)}
        assert {key: value for key, value in counted.items() if value} == {k: n for k, n in sums.items() if n}, name
        hints = sorted((values["op"], values["claim"], values["token"]) for _, values in inbox)
        assert hints == sorted((one.hint, one.id, one.token) for one in live.values() if one.hint), name
        numbers = [int(values["number"]) for _, values in inbox]
        assert len(set(numbers)) == len(numbers)
        assert max(numbers, default=0) <= int(fields.get("inbox", 0))
        return int(fields["version"])

    def _quota(self, fields: dict[str, str], claims: list[tuple[dict[str, str], int]]) -> None:
        """What the project uses is what the hashes of its living claims say, each step in the step's own script."""
        used: Counter[str] = Counter()
        for claim, _ in claims:
            if claim.get("state", "ended") != "ended" and claim.get("project") == "project":
                used.update(usage_of(claim))
        says = {name.removeprefix("used."): int(value) for name, value in fields.items() if name.startswith("used.")}
        assert says == {name: amount for name, amount in used.items() if amount}
        assert bool(fields) == bool(says), "nothing is left of a quota that nobody declares and nothing uses"

    def _gang(self, gang_id: str, fields: dict[str, str]) -> None:
        gang = self._model.gangs.get(gang_id)
        if gang is None:
            assert fields == {}, gang_id
            return
        members = {f"member.{one}": self._model.claims[one].host for one in gang.members}
        why = {"why": gang.why} if gang.why else {}
        assert fields == {**members, **why, "waiting": str(self._model.waiting(gang))}, gang_id

    def _lists(self, deadlines: set[str], chores: set[str], shelved: set[str], ends: dict[str, int]) -> None:
        model = self._model
        assert deadlines == {one.id for one in model.claims.values() if one.state in LEASED}
        assert shelved == {one.id for one in model.claims.values() if one.why == "shelved"}
        assert chores <= set(model.claims)
        for one in model.claims.values():
            target, former = model.pair(one)
            if model.needs_chore(one):
                assert chores & {target.id, former.id, one.id}, f"nobody would do what is left about {one.id}"
            if one.state == "ended" and one.gang:
                assert one.id in chores, one.id
            self._end(one, ends[one.id], chores)

    def _end(self, claim: Life, end_ms: int, chores: set[str]) -> None:
        """What is over is forgotten in its time, unless somebody still needs it."""
        model = self._model
        if claim.state != "ended":
            assert end_ms == -1, f"{claim.id} lives, and would be forgotten"
            return
        points = bool(claim.next) and not claim.origin
        pending = bool(claim.next) and model.claims[claim.next].former == claim.id
        needed = pending or model.needs_chore(claim) or (points and model.lives_on(claim.next))
        if needed or claim.why == "shelved":
            assert end_ms == -1, f"{claim.id} would be forgotten too early"
        elif claim.id not in chores and all(
            one.state == "ended" and one.id not in chores for one in model.claims.values() if one.origin == claim.id
        ):
            assert end_ms > 0, f"{claim.id} would never be forgotten"

    def _feed(self, entries: list[Any], versions: dict[str, int]) -> None:
        more = 0
        for entry, values in entries:
            self._entry, thing = entry, (values["kind"], values["name"])
            assert self._seq is None or int(values["seq"]) == self._seq + 1
            known = self._versions.get(thing)
            assert known is None or int(values["version"]) == known + 1, thing
            assert not more or int(values["more"]) == more - 1, "entries of one script count down"
            more = int(values["more"])
            self._seq, self._versions[thing] = int(values["seq"]), int(values["version"])
        assert more == 0
        assert {name: self._versions.get(("host", name)) for name in versions} == versions

    def _one_of_each_line(self) -> None:
        """An owner has one claim, and while it is moved two; never more, whoever did what."""
        model, pairs = self._model, defaultdict(list)
        for origin, line in model.lines().items():
            for one in line:
                pairs[origin].append(one.id)
            if len(line) > 1:
                assert len(line) == 2, pairs
                assert any(one.former in pairs[origin] for one in line), pairs
