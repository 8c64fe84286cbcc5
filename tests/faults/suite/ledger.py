"""What was answered to whom: the owners' books. The store's are held to it.

A claim is *owned* from the answer that it was placed until its owner asks to give it back. What was asked and not
answered yet may exist or not, and its owner asks until it knows.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Owned:
    """A claim that its owner was told of. `until` is the word that the answer waited for."""

    owner: str
    host: str
    token: str
    until: str = "claimed"
    was_active: bool = False
    """Whether the store had it as active before a fault: its host had said that the work runs."""


@dataclass(slots=True)
class Levels:
    """What came of the claims of one level: what the answer had waited for."""

    acknowledged: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """By what became of them: `forgotten`, or the why of their end."""
    restored: int = 0


@dataclass(slots=True)
class Ledger:
    """All owners' books."""

    owned: dict[str, Owned] = field(default_factory=dict)
    asked: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Ids of requests without an answer yet, and who asked."""
    giving: dict[str, str] = field(default_factory=dict)
    """Claims asked back without an answer yet, and who asked."""
    given: dict[str, str] = field(default_factory=dict)
    """Claims given back, and what the answer was."""
    refused: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)
    """How far each owner's own ids have come."""
    levels: dict[str, Levels] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)

    @property
    def answers(self) -> int:
        """How many answers have been given: what plans count in."""
        return sum(self.words[word] for word in ("placed", "refused", "over", "gave", "changed", "looked"))

    def hear(self, who: str, said: str, words: Mapping[str, Any]) -> None:
        """Enter what a scheduler process said."""
        self.words[said] += 1
        match said:
            case "asked":
                self.asked[tuple(words["ids"])] = who
                self.numbers[who] = max(self.numbers.get(who, 0), words["number"])
            case "placed":
                self._place(who, words)
            case "refused" | "over":
                self.asked.pop(tuple(words["ids"]), None)
                self.refused.update(words["ids"])
            case "giving":
                self.owned.pop(words["id"], None)
                self.giving[words["id"]] = who
            case "gave":
                self.giving.pop(words["id"], None)
                self.given[words["id"]] = words["how"]
            case "trouble":
                self.troubles[words["error"]] += 1
            case "defect":
                self.defects.append(f"{who}: {words['error']}")

    def _place(self, who: str, words: Mapping[str, Any]) -> None:
        self.asked.pop(tuple(words["ids"]), None)
        until = words.get("until", "claimed")
        for claim_id, host, token in zip(words["ids"], words["hosts"], words["tokens"], strict=True):
            self.owned[claim_id] = Owned(who, host, token, until)
            self.level(until).acknowledged += 1

    def level(self, until: str) -> Levels:
        """The count of a level."""
        return self.levels.setdefault(until, Levels())

    def left_by(self, who: str) -> dict[str, Any]:
        """What a new process of that name goes on with."""
        return {
            "held": [claim_id for claim_id, one in self.owned.items() if one.owner == who],
            "asked": [list(ids) for ids, owner in self.asked.items() if owner == who],
            "giving": [claim_id for claim_id, owner in self.giving.items() if owner == who],
            "number": self.numbers.get(who, 0),
        }

    def open_ids(self) -> set[str]:
        """Ids that may exist or not: asked for or asked back, and not answered."""
        return {one for ids in self.asked for one in ids} | self.giving.keys()
