"""What a round has cost: claims that were answered, that their owners have not given back, and that are not there."""

from collections.abc import Iterator

from tests.faults.suite.ledger import Owned
from tests.faults.suite.promises import Excuses, broken
from tests.faults.suite.reports import at, whereabouts
from tests.faults.suite.result import Result
from tests.faults.suite.view import together
from tests.faults.suite.world import World


def note_active(world: World) -> None:
    """Note of which claims hosts have said that their work runs: whatever breaks from here on, they stay."""
    world.watcher.look()
    known = together(world.watcher.now).claims
    for claim_id, one in world.ledger.owned.items():
        one.was_active = known.get(claim_id, {}).get("state") == "active"


def count_lost(world: World, result: Result, excuses: Excuses) -> None:
    """Note what was lost, and what hosts have brought back. The owners' books forget what was lost."""
    claims = together(world.watcher.now)
    known = claims.claims
    for claim_id, one in list(world.ledger.owned.items()):
        level = world.ledger.level(one.until)
        claim = known.get(claim_id)
        if claim is not None:
            if claim_id in world.watcher.missed:
                level.restored += 1
                result.restored += 1
            continue
        if claim_id in claims.shelved and (excuses.held_up or "forgotten" in excuses.ends) and not one.was_active:
            # It was unshelved: that did not come up within its lease, or was lost, and left it as it was.
            world.ledger.shelved[claim_id] = world.ledger.owned.pop(claim_id).owner
            continue
        gone = world.watcher.gone.get(claim_id)
        # Tombstones are not kept for ever: the watcher has seen them while they were there.
        end_reason = world.watcher.now[world.cell_of(one.host)].ended.get(claim_id) or (
            gone.end_reason if gone else "forgotten"
        )
        level.lost[end_reason] += 1
        result.lost[end_reason] += 1
        del world.ledger.owned[claim_id]
        world.ledger.given[claim_id] = f"lost: {end_reason}"
        if reason := broken(claim_id, one, gone, end_reason, excuses):
            is_there = f"is lost: {end_reason}, {whereabouts(claim_id, world.watcher)}"
            result.wrong.append(f"{_promised(claim_id, one)}; it {is_there}; {reason}")


def _promised(claim_id: str, one: Owned) -> str:
    lease = f", to be taken up until {at(one.expires_ms)}" if one.expires_ms else ""
    return f"claim {claim_id} was answered to {one.owner} as {one.until} on {one.host} at {at(one.answered_ms)}{lease}"


def lost_shelved(world: World, is_allowed: bool) -> Iterator[str]:
    """What is wrong of claims that are shelved. Only the store knows of those: what loses writes may lose them.

    Or it loses the shelving, and their hosts have them still. So they are a level of their own.
    """
    claims, level = together(world.watcher.now), world.ledger.level("shelved")
    known = claims.claims
    for claim_id in [*world.ledger.shelved]:
        if claim_id in claims.shelved:
            continue
        end_reason = "not shelved" if claim_id in known else claims.ended.get(claim_id, "forgotten")
        if claim_id not in known:
            level.lost[end_reason] += 1
            world.ledger.given[claim_id] = f"lost: {end_reason}"
            del world.ledger.shelved[claim_id]
        if not is_allowed:
            yield f"claim {claim_id} was shelved, and is lost: {end_reason}"


def came_back(world: World, is_allowed: bool) -> Iterator[str]:
    """What is wrong of claims that were there again after they were over, and that nobody was left to say it again of.

    A scheduler says again what it was answered, as long as it lives: what is lost with it and the store an operator
    gives back.
    """
    found, world.operator.came_back = world.operator.came_back, set()
    for claim_id in sorted(() if is_allowed else found):
        yield f"claim {claim_id} was there, and its owner had been told: {world.ledger.given[claim_id]}"
