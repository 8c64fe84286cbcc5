"""The moves of a plan that rebalances: which claims may be moved, and what was moved so far."""

from redsched.errors import Conflict, NotFound
from redsched.model import Claim, ClaimStatus
from redsched.model.records.plans import Move
from redsched.operate.plans.cell_copy import CellCopy
from redsched.operate.plans.relocation import NOWHERE, Relocation


class Mover:
    """Moves claims of a copy, at most `most` of them, each once."""

    def __init__(self, copy: CellCopy, most: int, policy: str = "") -> None:
        self.copy = copy
        self.moves: list[Move] = []
        self.relocation = Relocation(copy, policy=policy)
        self._most = most

    @property
    def left(self) -> int:
        """How many more claims may be moved."""
        return self._most - len(self.moves)

    def may_move(self, claim: Claim) -> bool:
        """Return whether the verb that moves claims would take this one, if it has another place."""
        is_settled = claim.state is ClaimStatus.ACTIVE and len(self.copy.claims[claim.claim_id].placements) == 1
        if not is_settled or claim.resizing_to or claim.gang in self.copy.unready:
            return False
        # That of local work has no request.
        return self.copy.knows_request_of(claim) and all(one.claim_id != claim.claim_id for one in self.moves)

    def on(self, host: str) -> list[Claim]:
        """Return the claims on a host that may be moved, the largest first."""
        return [one for one in self.copy.on_host(host) if self.may_move(one)]

    def move(
        self, claim: Claim, gain: str, hosts: frozenset[str] = NOWHERE, exclude: frozenset[str] = NOWHERE
    ) -> Move | None:
        """Move a claim to one of `hosts`, or any other, but not to those of `exclude`; None if there is no place."""
        try:
            place = self.relocation.place_of(claim, hosts, exclude)
        except (Conflict, NotFound):
            return None
        self.copy.move(claim, place)
        made = Move(claim.claim_id, claim.project, claim.token, claim.host, place.chosen.host, gain)
        self.moves.append(made)
        return made

    def undo_to(self, mark: int, moves: int) -> None:
        """Undo all changes since the copy was at a mark, with so many moves."""
        self.copy.undo_to(mark)
        del self.moves[moves:]
