"""The answers that each owner got. The store is compared with these books.

A claim is *owned* from the answer that it was placed until its owner asks to release, fail or shelve it. A claim
whose request is not answered yet may or may not exist, and its owner retries until it knows.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

ANSWERS = ("placed", "refused", "over", "gave", "changed", "looked", "kept", "shelved")
"""The messages by which a scheduler process reports an answer."""


class Answer(NamedTuple):
    """The last answer about a claim: the recipient, the answer, and the time (Unix ms)."""

    who: str
    what: str
    at_ms: int


@dataclass(slots=True)
class Owned:
    """A claim that its owner was informed of. `until` is the state that the answer had waited for.

    `expires_ms` is from the answer: until then the claim's host may accept it. None if no lease runs.
    """

    owner: str
    host: str
    token: str
    until: str = "claimed"
    answered_ms: int = 0
    expires_ms: int | None = None
    was_active: bool = False
    """Return whether the store had it as active before a fault: its host had confirmed that the work runs."""


@dataclass(slots=True)
class Levels:
    """The outcomes of the claims of one level, which is the state that the answer had waited for."""

    acknowledged: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """Counts by outcome: `forgotten`, or the claim's end_reason."""
    restored: int = 0

    def add(self, other: "Levels") -> None:
        """Add the outcomes of another level."""
        self.acknowledged += other.acknowledged
        self.lost += other.lost
        self.restored += other.restored


@dataclass(slots=True)
class Ledger:
    """The books of all owners."""

    owned: dict[str, Owned] = field(default_factory=dict)
    asked: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Ids of requests without an answer yet, and their owners."""
    giving: dict[str, str] = field(default_factory=dict)
    """Claims whose release is not answered yet, and their owners."""
    shelved: dict[str, str] = field(default_factory=dict)
    """Claims that are shelved and may be unshelved, and their owners."""
    orphans: set[str] = field(default_factory=set)
    """The `consumer` of requests for which the server creates ids, and whose callers were killed before the answer."""
    given: dict[str, str] = field(default_factory=dict)
    """Released claims, and the answer to the release."""
    answered_by: dict[str, str] = field(default_factory=dict)
    """The process that got that answer. It repeats the release in a new epoch if the store has lost it."""
    silenced: set[str] = field(default_factory=set)
    """Released claims whose release no process repeats, because that process has been killed."""
    refused: set[str] = field(default_factory=set)
    last: dict[str, Answer] = field(default_factory=dict)
    """The last answer about each id."""
    said: dict[str, list[Answer]] = field(default_factory=dict)
    """All that callers said about each id: the calls as well as the answers."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The last number that each owner has used in its own ids."""
    levels: dict[str, Levels] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)

    @property
    def acknowledged(self) -> Counter[str]:
        """Return the number of claims of each level that callers were informed of."""
        return Counter({until: level.acknowledged for until, level in self.levels.items()})

    @property
    def answers(self) -> int:
        """Return the number of answers, which is the clock of plans."""
        return sum(self.words[word] for word in ANSWERS)

    def hear(self, who: str, said: str, words: Mapping[str, Any]) -> None:
        """Record a message of a scheduler process."""
        self.words[said] += 1
        self._note(who, said, words)
        match said:
            case "asked":
                self.asked[tuple(words["ids"])] = who
                self.numbers[who] = max(self.numbers.get(who, 0), words["number"])
            case "placed":
                self._place(who, words)
            case "refused" | "over":
                self.asked.pop(tuple(words["ids"]), None)
                self.refused.update(words["ids"])
            case "orphaned":
                self.asked.pop(tuple(words["ids"]), None)
                self.orphans.update(words["ids"])
            case "trouble":
                self.troubles[words["error"]] += 1
            case "defect":
                self.defects.append(f"{who}: {words['error']}")
            case _ if "id" in words:
                self._change(who, said, words)

    def _change(self, who: str, said: str, words: Mapping[str, Any]) -> None:
        """Record the new state of one claim."""
        claim_id = words["id"]
        match said:
            case "giving" | "failing" | "shelving" | "unshelving":
                # Until it is answered the claim may or may not exist. An owner that restarts meanwhile releases it.
                self.owned.pop(claim_id, None)
                self.shelved.pop(claim_id, None)
                self.giving[claim_id] = who
            case "gave":
                self.giving.pop(claim_id, None)
                self.given[claim_id] = words["how"]
                self.answered_by[claim_id] = who
            case "kept":
                self.giving.pop(claim_id, None)
                at_ms, expires_ms = _at_ms(words), words.get("expires_at_ms")
                self.owned[claim_id] = Owned(who, words["host"], words["token"], "claimed", at_ms, expires_ms)
                self.level("claimed").acknowledged += 1
            case "shelved":
                self.giving.pop(claim_id, None)
                self.shelved[claim_id] = who
                self.level("shelved").acknowledged += 1

    def _place(self, who: str, words: Mapping[str, Any]) -> None:
        self.asked.pop(tuple(words.get("asked", words["ids"])), None)
        until = words.get("until", "claimed")
        leases = words.get("expire_at_ms", [None] * len(words["ids"]))
        for claim_id, host, token, lease in zip(words["ids"], words["hosts"], words["tokens"], leases, strict=True):
            self.owned[claim_id] = Owned(who, host, token, until, _at_ms(words), lease)
            self.level(until).acknowledged += 1

    def _note(self, who: str, said: str, words: Mapping[str, Any]) -> None:
        """Record a message for each id that it is about."""
        hosts = words.get("hosts", [words.get("host")])
        ids = words.get("ids", [words["id"]] if "id" in words else [])
        for number, claim_id in enumerate(ids):
            host = hosts[number] if number < len(hosts) else None
            how = words.get("how") or words.get("end_reason") or words.get("error")
            message = Answer(who, " ".join(filter(None, (said, how, host and f"on {host}"))), _at_ms(words))
            self.said.setdefault(claim_id, []).append(message)
            if said in ANSWERS:
                self.last[claim_id] = message

    def silence(self, who: str) -> None:
        """Record that a process was killed: it will not repeat its releases."""
        of_it = {claim_id for claim_id, told in self.answered_by.items() if told == who}
        self.silenced |= of_it
        for claim_id in of_it:
            del self.answered_by[claim_id]

    def level(self, until: str) -> Levels:
        """Return the counts of a level."""
        return self.levels.setdefault(until, Levels())

    def left_by(self, who: str) -> dict[str, Any]:
        """Return what a new process of that name continues with."""
        return {
            "held": [claim_id for claim_id, one in self.owned.items() if one.owner == who],
            "shelved": [claim_id for claim_id, owner in self.shelved.items() if owner == who],
            "asked": [list(ids) for ids, owner in self.asked.items() if owner == who],
            "giving": [claim_id for claim_id, owner in self.giving.items() if owner == who],
            "number": self.numbers.get(who, 0),
        }

    def open_ids(self) -> set[str]:
        """Return ids that may or may not exist: their request or release is not answered."""
        return {one for ids in self.asked for one in ids} | self.giving.keys()


def _at_ms(words: Mapping[str, Any]) -> int:
    """Return when a message was sent, as Unix time of the machine's clock: the clock of the process may be wrong."""
    now_s = time.monotonic()
    return int((time.time() - now_s + words.get("at_s", now_s)) * 1000)
