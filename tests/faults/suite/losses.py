"""What a round has cost: claims that were answered, that their owners have not given back, and that are not there."""

from collections.abc import Iterator

from tests.faults.suite import traffic
from tests.faults.suite.result import Result
from tests.faults.suite.view import together
from tests.faults.suite.world import World


def note_active(world: World) -> None:
    """Note of which claims hosts have said that their work runs: whatever breaks from here on, they stay."""
    world.watcher.look()
    known = together(world.watcher.now).by_owner()
    for claim_id, one in world.ledger.owned.items():
        one.was_active = known.get(claim_id, {}).get("state") == "active"


def count_lost(world: World, result: Result, allowed: frozenset[str]) -> None:
    """Note what was lost, of which `allowed` may be, and what hosts have brought back. The owners' books forget it."""
    claims = together(world.watcher.now)
    known = claims.by_owner()
    for claim_id, one in list(world.ledger.owned.items()):
        level = world.ledger.level(one.until)
        claim = known.get(claim_id)
        if claim is not None:
            if claim_id in world.watcher.missed:
                level.restored += 1
                result.restored += 1
            continue
        if claim_id in claims.shelved and "expired" in allowed and not one.was_active:
            # What took its place again did not come up within its lease, and left it as it was.
            world.ledger.shelved[claim_id] = world.ledger.owned.pop(claim_id).owner
            continue
        why = world.watcher.now[world.cell_of(one.host)].ended.get(claim_id, "forgotten")
        level.lost[why] += 1
        result.lost[why] += 1
        del world.ledger.owned[claim_id]
        world.ledger.given[claim_id] = f"lost: {why}"
        if one.was_active or one.until == "active":
            result.wrong.append(f"claim {claim_id} was active on {one.host}, and is lost: {why}")
        elif why not in allowed and not _fell(claim_id, why, allowed):
            result.wrong.append(f"claim {claim_id} on {one.host} was answered as claimed, and is lost: {why}")


def _fell(claim_id: str, why: str, allowed: frozenset[str]) -> bool:
    """Whether it may have gone with another claim of its gang, whose lease ran out: the others are failed then."""
    return why == "failed" and "expired" in allowed and traffic.stands_with_others(claim_id)


def lost_shelved(world: World, is_allowed: bool) -> Iterator[str]:
    """What is wrong of claims that are shelved. Only the store knows of those: what loses writes may lose them.

    Or it loses the shelving, and their hosts have them still. So they are a level of their own.
    """
    claims, level = together(world.watcher.now), world.ledger.level("shelved")
    known = claims.by_owner()
    for claim_id in [*world.ledger.shelved]:
        if claim_id in claims.shelved:
            continue
        why = "not shelved" if claim_id in known else claims.ended.get(claim_id, "forgotten")
        if claim_id not in known:
            level.lost[why] += 1
            world.ledger.given[claim_id] = f"lost: {why}"
            del world.ledger.shelved[claim_id]
        if not is_allowed:
            yield f"claim {claim_id} was shelved, and is lost: {why}"


def came_back(world: World, is_allowed: bool) -> Iterator[str]:
    """What is wrong of claims that were there again after they were over, and that nobody was left to say it again of.

    A scheduler says again what it was answered, as long as it lives: what is lost with it and the store an operator
    gives back.
    """
    found, world.operator.came_back = world.operator.came_back, set()
    for claim_id in sorted(() if is_allowed else found):
        yield f"claim {claim_id} was there, and its owner had been told: {world.ledger.given[claim_id]}"
