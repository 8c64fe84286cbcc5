"""The placings of one piece of work: a claim, the claim that succeeded it, and so on. Which of them it is now.

An owner knows work by the id of its first claim. Where it was moved, or failed and found another place, that id leads
to the claim that it has become (docs/architecture.md, "Succession").
"""

from collections.abc import Sequence

from redsched.model import OVER, Claim, ClaimStatus, Why
from redsched.store import CellStore

MOST_STEPS = 8
"""Forward there are hardly ever more than two: a finished succession leads past its former."""


async def succession(store: CellStore, claim: Claim) -> tuple[Claim, ...]:
    """The claim, and those that its `next` leads to."""
    found = [claim]
    while found[-1].next and len(found) <= MOST_STEPS:
        following = (await store.read_claims([found[-1].next])).get(found[-1].next)
        if following is None:
            break
        found.append(following)
    return tuple(found)


def present(placings: Sequence[Claim]) -> Claim:
    """The placing that the work is at: the first that is not over, or was not succeeded.

    While a move is under way that is the one it is moved from. One that its owner released was not succeeded; nor was a
    shelved one by what could not be placed, or by what it was to be moved to before.
    """
    now = placings[0]
    for following in placings[1:]:
        was_moving = following.former == now.id and following.former_why is not Why.SHELVED
        stays_shelved = now.why is Why.SHELVED and (was_moving or following.state is ClaimStatus.ENDED)
        if now.state not in OVER or now.why is Why.RELEASED or stays_shelved:
            break
        now = following
    return now


async def earlier(store: CellStore, claim: Claim) -> tuple[Claim, ...]:
    """The placings that led to this one, the latest first, as far as they are remembered."""
    found: list[Claim] = []
    now = claim
    while now.came_from and len(found) < MOST_STEPS:
        before = (await store.read_claims([now.came_from])).get(now.came_from)
        if before is None:
            break
        found.append(before)
        now = before
    return tuple(found)
