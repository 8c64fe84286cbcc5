"""Claims that succeed others, on their hosts: what the hook is told, and what a wipe must not lose."""

import json

import redis

from redsched.agent.fleet import simulated
from redsched.model import Candidate, ClaimStatus, Why
from redsched.store import ClaimCall, Former, Member, Outcome
from tests.agent.conftest import World

FIRST, SECOND = (report.name for report in simulated(2, lease_s=2))


async def succeed(world: World, former: Former) -> None:
    """Have claim `c1.next` made on the second host, to take the place of another."""
    clock = await world.cell.tick()
    member = Member("c1.next", (Candidate(SECOND, {"VCPU": 2}),), former=former)
    call = ClaimCall((member,), clock.epoch, clock.now_ms, clock.seq, "d" * 32, fresh=True, lease_ms=60_000)
    assert (await world.cell.claim(call)).outcome is Outcome.OK


async def test_the_start_of_a_move_is_told_of_it_and_a_wipe_does_not_lose_it(world: World) -> None:
    """Lost with the store, the source would be held for ever, and the owner's id lead nowhere."""
    world.on("start", f"cat > {world.folder}/told-$REDSCHED_CLAIM_ID")
    await world.start(simulated(2, lease_s=2), hook=world.hook)
    await world.place("mine", {"VCPU": 2}, host=FIRST)
    token = (await world.reaches("mine", ClaimStatus.ACTIVE)).token
    await succeed(world, Former("mine", FIRST, token, Why.MOVED))
    await world.reaches("c1.next", ClaimStatus.ACTIVE)
    told = json.loads((world.folder / "told-c1.next").read_text())
    assert told["moves"] == {"claim": "mine", "host": FIRST}
    assert "moves" not in json.loads((world.folder / "told-mine").read_text())

    with redis.Redis.from_url(world.url, protocol=2) as client:
        client.flushall()
    claim = await world.reaches("c1.next", ClaimStatus.ACTIVE)
    assert (claim.origin, claim.former, claim.former_host) == ("mine", "mine", FIRST)
    assert (claim.former_token, claim.former_why) == (token, Why.MOVED)
    await world.reaches("mine", ClaimStatus.ACTIVE)
