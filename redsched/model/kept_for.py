"""What a host keeps for a request that waits for room."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from redsched.model.records.fields import Numbers

UNNAMED = "kept for a request that waits"
"""The end of texts that go to callers who may not know the request; `named` replaces it for those who may."""


@dataclass(frozen=True, slots=True)
class KeptFor:
    """What a host keeps for a request that waits for room: other claims do not get it, free or not."""

    slots: Annotated[Numbers, Field(description="The amounts by slot.")] = field(default_factory=dict)
    request: Annotated[
        str,
        Field(description="The claim id it asks for, else its request id or reservation; empty for those of others."),
    ] = ""
    project: Annotated[str, Field(description="Its project; likewise.")] = ""

    @property
    def text(self) -> str:
        """For whom they are kept, in words."""
        if not self.request:
            return "kept for another request"
        return f"kept for request {self.request}" + (f" of project {self.project}" if self.project else "")

    def named(self, text: str) -> str:
        """Return a text about what a host keeps with the name of the request, if it is not hidden."""
        return text.replace(UNNAMED, self.text) if self.request else text

    def seen_by(self, projects: Collection[str]) -> "KeptFor":
        """Return it as a caller with these projects may see it."""
        return self if self.project in projects else KeptFor(self.slots)


def fact_of(kept: KeptFor) -> dict[str, Any]:
    """Return it as facts of errors and REST have it."""
    return {"slots": dict(kept.slots), "request": kept.request, "project": kept.project}


def from_fact(fact: Mapping[str, Any]) -> KeptFor:
    """Return what `fact_of` has made a fact of."""
    return KeptFor(fact["slots"], fact["request"], fact["project"])


def of_facts(facts: Mapping[str, Any]) -> Iterator[KeptFor]:
    """Yield what the facts of an error have: of the host that it is about, and of the nearest ones."""
    for one in (facts, *facts.get("nearest", ())):
        if fact := one.get("kept"):
            yield from_fact(fact)


def named_text(text: str, facts: Mapping[str, Any]) -> str:
    """Return the text of an error with the name of the request that the first host keeps something for, if it has it.

    Errors go to callers who may not know the request, so their texts do not name it.
    """
    kept = next(of_facts(facts), None)
    return text if kept is None else kept.named(text)
