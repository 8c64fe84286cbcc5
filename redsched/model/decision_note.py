"""What a claim keeps of the decision on its newest placement, and its parts, which explanations have too."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import not_
from typing import Annotated, Any

from pydantic import Field, computed_field


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """The number of hosts rejected for a reason. Each host counts once, under the first reason that rejected it."""

    reason: str
    hosts: int

    @property
    def text(self) -> str:
        """The count with the reason in words: `3 in other zones`, `2 short of VCPU`, `1 by required:HW_CPU_X86_AVX`."""
        words = _WORDS.get(self.reason)
        if words is None:
            words = f"short of {self.reason}" if self.reason.isupper() else _with_name(self.reason)
        return f"{self.hosts} {words}"


def _with_name(reason: str) -> str:
    kind, _, name = reason.partition(":")
    return _NAMED[kind].format(name) if kind in _NAMED and name else f"by {reason}"


_NAMED = {
    "min_unit": "by min_unit of {}",
    "max_unit": "by max_unit of {}",
    "step_size": "by step_size of {}",
    "numa": "short of {} in one NUMA node",
    "traits": "without a pool with the traits of group {}",
}
"""The reasons in words that end with a name."""
_WORDS = {
    "kept": "kept for another request",
    "numa": "without a NUMA node for all of a cell",
    "down": "down",
    "not-attested": "not attested",
    "disabled": "disabled",
    "draining": "draining",
    "zone": "in other zones",
    "hosts": "not among those named",
    "exclude_hosts": "excluded",
    "same numa": "without a NUMA node",
    "count": "with room, but not for all places",
    "pools": "with room for each part, but not for all together",
    "other": "for other reasons",
}
"""The reasons in words, beside those that are names: of resource classes, traits, labels, groups."""


@dataclass(frozen=True, slots=True)
class RankedHost:
    """A host that fits one place, with its score: the sum of what its weighers add."""

    host: str
    score: Annotated[float, Field(description="Higher is better.")]
    weighers: Annotated[
        Mapping[str, float], Field(description="What each weigher adds to the score: its value times its multiplier.")
    ]
    member: Annotated[
        str, Field(description="For a gang: the member that the place is for. Absent otherwise.", exclude_if=not_)
    ] = ""


@dataclass(frozen=True, slots=True)
class DecisionNote:
    """How the host of the placement named `token` was chosen, among the hosts of its cell.

    `ranked` has the host that was to be tried first, and the next two, with the scores that they had; of a decision on
    several places, the hosts of the first of them, and the next two. The claim script took the one that `candidate`
    counts from 1, because those before it had no room any more. `reasons` count the hosts that did not fit, `other`
    those of rare reasons.
    """

    token: Annotated[str, Field(description="The placement that it is about, by its first token.")]
    host: Annotated[str, Field(description="The host of that placement.")]
    candidate: Annotated[
        int, Field(description="Which of the candidates was taken, from 1. Those before it had no room any more.")
    ]
    at_ms: Annotated[int, Field(description="When it was decided, Unix ms, by the store's clock.")]
    hosts: Annotated[int, Field(description="Number of hosts looked at.")]
    reasons: Annotated[
        tuple[ReasonCount, ...],
        Field(description="The others, each counted under the first reason that ruled it out; `other`: rare reasons."),
    ] = ()
    policy: str = ""
    release: Annotated[str, Field(description="The release of the scheduler that decided.")] = ""
    ranked: Annotated[
        tuple[RankedHost, ...],
        Field(
            description="The host to be tried first and the next two, with their scores. The first is a random one of "
            "the best (`REDSCHED_PICK_FROM`)."
        ),
    ] = ()

    @computed_field(description="Number of these hosts that fitted.")  # type: ignore[prop-decorator] # as in hosts.py
    @property
    def fits(self) -> int:
        """The number of hosts that fitted."""
        return self.hosts - sum(one.hosts for one in self.reasons)

    @classmethod
    def from_text(cls, text: str, token: str, host: str) -> "DecisionNote | None":
        """Return the decision on a placement from a stored text; None if it is about others, or unreadable."""
        head, *lines = text.split("\n")
        at_ms, *members = head.split(" ")
        try:
            found = next((one for one in members if one.startswith(f"{token}:")), None)
            if found is None:
                return None
            _, candidate, number = found.split(":")
            return cls(token, host, int(candidate), int(at_ms), **_read(json.loads(lines[int(number) - 1])))
        except (ValueError, LookupError, TypeError, AttributeError):
            return None  # edited by hand


def _read(kept: Mapping[str, Any]) -> dict[str, Any]:
    reasons = tuple(ReasonCount(str(name), int(hosts)) for name, hosts in kept["left_out"].items())
    ranked = _ranked(kept["weighers"], kept["ranked"])
    words = {name: str(kept[name]) for name in ("policy", "release")}
    return {"hosts": int(kept["hosts"]), "reasons": reasons, "ranked": ranked, **words}


def _ranked(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[RankedHost, ...]:
    """Return the hosts with what the weighers add that give any of them something."""
    parts = [[float(value) + 0.0 for value in row[2:]] for row in rows]  # no -0.0
    used = [number for number in range(len(names)) if any(one[number] for one in parts)]
    return tuple(
        RankedHost(str(row[0]), float(row[1]), {str(names[number]): one[number] for number in used})
        for row, one in zip(rows, parts, strict=True)
    )
