"""The losses of a round: claims that were answered, that their owners have not released, and that do not exist."""

from collections.abc import Iterator

from tests.faults.suite.callers.traffic import stands_with_others
from tests.faults.suite.checks.ledger import Owned
from tests.faults.suite.checks.promises import Excuses, broken
from tests.faults.suite.checks.view import together
from tests.faults.suite.reporting.reports import at, whereabouts
from tests.faults.suite.reporting.result import Result
from tests.faults.suite.world import World


def note_active(world: World) -> None:
    """Record the claims whose hosts have confirmed that their work runs: they must survive every later fault."""
    world.watcher.look()
    known = together(world.watcher.now).claims
    waiting = {_of_request(one) for one, claim in known.items() if claim.get("state") in ("claimed", "starting")}
    for claim_id, one in world.ledger.owned.items():
        is_active = known.get(claim_id, {}).get("state") == "active"
        # A gang stands once all of it is active: until then the end of one member ends all.
        one.was_active = is_active and not (stands_with_others(claim_id) and _of_request(claim_id) in waiting)


def _of_request(claim_id: str) -> str:
    """What the ids of one request have in common."""
    return claim_id.rpartition("-")[0]


def count_lost(world: World, result: Result, excuses: Excuses) -> None:
    """Record lost claims and claims that hosts have restored. The owners' books drop the lost ones."""
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
            # It was unshelved: its placement did not become active within its lease, or was lost, and left it shelved.
            world.ledger.shelved[claim_id] = world.ledger.owned.pop(claim_id).owner
            continue
        gone = world.watcher.gone.get(claim_id)
        # Tombstones expire: the watcher has recorded them while they existed.
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
    lease = f", to be accepted until {at(one.expires_ms)}" if one.expires_ms else ""
    return f"claim {claim_id} was answered to {one.owner} as {one.until} on {one.host} at {at(one.answered_ms)}{lease}"


def lost_shelved(world: World, is_allowed: bool) -> Iterator[str]:
    """Yield errors about shelved claims. Only the store knows these, so faults that lose writes may lose them.

    Such a fault may also lose the shelving, so that hosts still have the claims. So they are a level of their own.
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
    """Yield errors about claims that existed again after their end, and whose release no process was left to repeat.

    A scheduler repeats the releases that it answered, as long as it lives. The operator releases claims that are
    lost with both the scheduler and the store.
    """
    found, world.operator.came_back = world.operator.came_back, set()
    for claim_id in sorted(() if is_allowed else found):
        yield f"claim {claim_id} was there, and its owner had been told: {world.ledger.given[claim_id]}"
