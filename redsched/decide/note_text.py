"""The text of a decision that is kept with a claim: hosts counted by reason, and the best hosts with their scores.

Every claim pays for it, so it is put together from parts that are kept until what they describe changes: the counts,
and each host's score by weigher, which the decision itself has computed (`redsched.model.DecisionNote` reads it).
"""

import json
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from math import isfinite

from redsched.decide.filters.pools import POOLS
from redsched.decide.profile import RequestProfile
from redsched.decide.rejections import Rejections
from redsched.decide.result import Place
from redsched.decide.scoring.weigher import LOWEST
from redsched.model import ReasonCount
from redsched.release import release

RANKED = 3
"""The hosts that the text of one place has: the first to be tried, and the next two."""
MAX_CHOSEN = 30
"""The most hosts of places that share a text."""
MAX_REASONS = 200
"""The most characters for reasons. The hosts of further ones are counted together."""
OTHER = "other"
MAX_WEIGHERS = 16
"""The most weighers whose part of a score is kept."""
_encode = json.JSONEncoder().encode


class DecisionTexts:
    """Writes the texts of decisions on one shape. Use it right after a decision, on the same columns."""

    def __init__(self, profile: RequestProfile, policy: str) -> None:
        self._profile = profile
        self._rejections = Rejections(profile)
        self._head = ""
        self._counted: object = None
        self._texts: dict[int, tuple[object, str]] = {}
        """By row, the parts of its score, and the text for it."""
        names = [weigher.name for weigher in profile.ranking.weighing][:MAX_WEIGHERS]
        self._zeros = [0.0] * len(names)
        self._format = f'["%s",{",".join(["%.6g"] * (1 + len(names)))}]'
        fixed = {"policy": policy, "release": release(), "weighers": names}
        self._tail = _encode(fixed)[1:-1].replace(", ", ",").replace(": ", ":")

    def of_places(self, places: Iterable[Place]) -> str:
        """Return the text for places of this shape, which they share: the hosts of the first of them, and two more."""
        chosen = dict.fromkeys(place.chosen.host for place in places)
        hosts = dict.fromkeys([*islice(chosen, MAX_CHOSEN), *self._others(places, chosen)])
        rows = (self._profile.columns.row(host) for host in hosts)
        return self.of_rows([row for row in rows if row is not None])

    def of_rows(self, rows: Sequence[int]) -> str:
        """Return the text for a place on the first of these rows."""
        texts, columns = self._texts, self._profile.columns
        found = []
        for row, parts in zip(rows, self._profile.ranking.parts_of(rows), strict=True):
            known = texts.get(row)
            if known is None or known[0] is not parts:
                known = texts[row] = parts, self._of_row(columns.name(row), row, parts)
            found.append(known[1])
        return f'{self._counts()},{self._tail},"ranked":[{",".join(found)}]}}'

    def _others(self, places: Iterable[Place], chosen: Container[str]) -> Iterator[str]:
        further = (one.host for place in places for one in place.candidates[1:])
        return islice((host for host in further if host not in chosen), RANKED - 1)

    def _counts(self) -> str:
        profile, rejections = self._profile, self._rejections
        rejections.update()
        dynamic, failed = profile.fitting.dynamic_counts(), profile.known_to_fail()
        counted = rejections.version, len(profile.columns), failed, *dynamic
        if counted != self._counted:
            more = [*dynamic, ReasonCount(POOLS, failed)]
            left_out = _bounded([*rejections.counts(), *(one for one in more if one.hosts)])
            texts = ",".join(f"{_encode(name)}:{hosts}" for name, hosts in left_out.items())
            self._head = f'{{"hosts":{len(profile.columns)},"left_out":{{{texts}}}'
            self._counted = counted
        return self._head

    def _of_row(self, name: str, row: int, parts: Sequence[float]) -> str:
        total = sum(parts)
        if parts and isfinite(total):
            return self._format % (name, total, *parts[:MAX_WEIGHERS])
        score = self._profile.ranking.score_of(row)
        return _any_numbers(name, LOWEST if score is None else score, [*parts, *self._zeros][: len(self._zeros)])


def _any_numbers(name: str, score: float, parts: Sequence[float]) -> str:
    """Return what the format gives, for weighers of users that give infinity or no number."""
    numbers = [value if isfinite(value) else LOWEST for value in (score, *parts)]
    return f'["{name}",{",".join(f"{value:.6g}" for value in numbers)}]'


def _bounded(counts: Iterable[ReasonCount]) -> dict[str, int]:
    """Return the counts by reason, as many of the largest as MAX_REASONS has room for."""
    found: dict[str, int] = {}
    for one in counts:
        found[one.reason] = found.get(one.reason, 0) + one.hosts
    kept, left = dict[str, int](), MAX_REASONS
    for name, hosts in sorted(found.items(), key=lambda one: -one[1]):
        left -= len(_encode(name))
        kept[name if left >= 0 else OTHER] = hosts + (kept.get(OTHER, 0) if left < 0 else 0)
    return kept
