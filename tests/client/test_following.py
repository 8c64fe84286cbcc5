"""Following one claim with both clients: waiting for a state, and watching its changes."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from redsched.client import AsyncClient, Client
from redsched.errors import ClaimState, InvalidRequest, NotFound
from redsched.model import ClaimStatus
from tests.client.test_clients import blocked
from tests.support.waiting import patience_s

OFTEN_S = 0.01


@pytest.fixture
async def client(served: str) -> AsyncIterator[AsyncClient]:
    """Yield a client, and the claim `mine` for 2 VCPU."""
    async with AsyncClient(served) as one:
        await one.select({"VCPU": 2}, claim_ids=("mine",))
        yield one


async def test_waiting_returns_the_claim_once_it_is_in_the_state(client: AsyncClient) -> None:
    token = (await client.claims.get("mine")).token
    waiting = asyncio.create_task(client.claims.wait("mine", every_s=OFTEN_S))
    assert (await client.claims.wait("mine", ("starting", "claimed"))).state is ClaimStatus.CLAIMED
    assert not waiting.done()
    await client.claims.confirm("mine", token)
    assert (await asyncio.wait_for(waiting, patience_s(20))).state is ClaimStatus.ACTIVE


async def test_waiting_ends_when_the_claim_does(client: AsyncClient) -> None:
    await client.claims.release("mine", force=True)
    with pytest.raises(ClaimState, match=r"claim mine has ended \(released\) and will not be active"):
        await client.claims.wait("mine")
    assert (await client.claims.wait("mine", "ended")).state is ClaimStatus.ENDED


async def test_waiting_ends_in_time(client: AsyncClient) -> None:
    with pytest.raises(TimeoutError, match=r"claim mine is claimed after 0.02 s, and not active"):
        await client.claims.wait("mine", timeout_s=0.02, every_s=OFTEN_S)


async def test_watching_yields_each_change_and_ends_with_the_claim(client: AsyncClient) -> None:
    seen = []
    async for claim in client.claims.watch("mine", every_s=OFTEN_S):
        seen.append(claim.state.value)
        if claim.state is ClaimStatus.CLAIMED:
            await client.claims.renew("mine", claim.token, lease_s=600)
            await client.claims.confirm("mine", claim.token)
        elif claim.state is ClaimStatus.ACTIVE:
            await client.claims.release("mine", force=True)
    assert seen == ["claimed", "active", "ended"]


async def test_a_client_that_blocks_follows_too(served: str) -> None:
    def follow(client: Client) -> list[str]:
        client.select({"VCPU": 1}, claim_ids=("own",))
        watched = client.claims.watch("own", every_s=OFTEN_S)
        first = next(watched)
        client.claims.confirm("own", first.token)
        waited = client.claims.wait("own", every_s=OFTEN_S)
        client.claims.release("own", force=True)
        return [first.state, waited.state, *(one.state for one in watched)]

    assert await blocked(served, follow) == ["claimed", "active", "ended"]


@pytest.mark.parametrize(
    ("state", "every_s", "problem"),
    [
        ("running", 1.0, "unknown state 'running': use pending, claimed, starting, active, ending, ended"),
        ((), 1.0, "no state to wait for"),
        ("active", 0.0, "every_s is 0.0"),
    ],
)
async def test_what_cannot_be_followed_is_refused(
    client: AsyncClient, state: str, every_s: float, problem: str
) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        await client.claims.wait("mine", state, every_s=every_s)


async def test_an_unknown_claim_is_not_waited_for(client: AsyncClient) -> None:
    with pytest.raises(NotFound):
        await client.claims.wait("other")
    with pytest.raises(NotFound):
        await anext(aiter(client.claims.watch("other")))
