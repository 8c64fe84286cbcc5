"""What a host keeps for a request that waits for room."""

from collections.abc import Collection
from dataclasses import dataclass, field

from redsched.model.claims import Amounts

UNNAMED = "kept for a request that waits"
"""The end of texts that go to callers who may not know the request; `named` replaces it for those who may."""


@dataclass(frozen=True, slots=True)
class KeptFor:
    """Amounts by slot that other claims do not get, free or not. `request` and `project`: whose they are; '' if hidden.

    A request is named by the claim id that it asks for, else by its request id, else by that of its reservation.
    """

    amounts: Amounts = field(default_factory=dict)
    request: str = ""
    project: str = ""

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
        return self if self.project in projects else KeptFor(self.amounts)
