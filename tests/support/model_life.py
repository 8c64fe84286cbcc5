"""The things of a plain model of claims: hosts that are heard or not, claims, gangs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redsched.model import ClaimStatus
from redsched.store import HeldClaim
from tests.support.placements import held_claim

LEASED = ("claimed", "starting")
OVER = ("ending", "ended")
BY_OWNER = ("released", "moved", "shelved")
WORDS_OF_HOSTS = ("true", "true", "true", "further", "lost", "ended", "ending")
"""What a journal may have of a claim: as the store, active before the store heard of it, nothing, or its end."""


@dataclass
class Place:
    """A host: whether it has attested to this epoch, and what the operator said."""

    attested: bool = True
    written_off: bool = False
    evacuated: bool = False

    @property
    def can_be_told(self) -> bool:
        """Whether anything may be said about its claims."""
        return self.attested or self.written_off or self.evacuated

    @property
    def is_awaited(self) -> bool:
        """Whether it is waited for, so that what it had taken up is only asked back."""
        return self.attested


@dataclass
class Life:
    """A claim."""

    id: str
    host: str
    token: str
    amounts: dict[str, int]
    state: str = "claimed"
    why: str = ""
    wanted: dict[str, int] = field(default_factory=dict)
    resized_from: str = ""
    due: bool = False
    hint: str = "claim"
    is_local: bool = False
    gang: str = ""
    fell: bool = False
    origin: str = ""
    former: str = ""
    former_why: str = ""
    by: str = ""
    """`later` or `passed`: the deadline of a move."""
    arrived: bool = False
    next: str = ""
    final: bool = False
    """Its owner was told that it has failed for good, or has given up all that goes by its id."""


@dataclass
class Gang:
    """Claims that stand or fall together: those that have not ended, and why one has."""

    members: set[str]
    why: str = ""


STATES: Mapping[str, ClaimStatus] = {"further": ClaimStatus.ACTIVE, "ending": ClaimStatus.ENDING}


def entry_of(claim: Life, word: str) -> HeldClaim | None:
    """A claim as its host's journal has it, by a word of WORDS_OF_HOSTS."""
    if word in ("lost", "ended") or (claim.state == "claimed" and word == "true"):
        return None
    state = STATES.get(word, ClaimStatus(claim.state))
    return held_claim(claim.id, claim.token, state, claim.amounts, wanted=claim.wanted)
