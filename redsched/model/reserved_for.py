"""What a host keeps for a request that waits for room."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from redsched.model.records.fields import Numbers

UNNAMED = "kept for a request that waits"
"""The end of texts that go to callers who may not know the request; `named` replaces it for those who may."""


@dataclass(frozen=True, slots=True)
class ReservedFor:
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

    def seen_by(self, projects: Collection[str]) -> "ReservedFor":
        """Return it as a caller with these projects may see it."""
        return self if self.project in projects else ReservedFor(self.slots)
