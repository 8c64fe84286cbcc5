"""Hosts that have seen an epoch of a clock that was days ahead: accepted, or refused with what an operator can do."""

import httpx
import redis

from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.api.parts import check_problem
from tests.api.test_agents import H1, Api, api_over
from tests.cli.parts import run
from tests.support.store_clock import DAY_MS, StoreTime
from tests.support.waiting import wait_until

PATH = "/v1/agent/calls/raise-epoch"


async def epoch_of_a_wrong_clock(api: Api, store_time: StoreTime, url: str) -> str:
    """Set the store's clock three days ahead, have h1 attest, set the clock right, and wipe the store.

    Return the epoch to which h1 has attested last.
    """
    await api.attested()
    store_time.set_ahead(3 * DAY_MS)
    await api.attested()
    store_time.set_ahead(0)
    epoch = await api.attested()
    with redis.Redis.from_url(url, protocol=2) as client:
        client.flushall()
    return epoch


async def raise_above(api: Api, epoch: str) -> httpx.Response:
    async with api.of(H1) as agent:
        return await agent.post(PATH, json={"host": "h1", "above": epoch})


async def kinds(url: str) -> dict[str, tuple[str, ...]]:
    """Return the commands of each problem of the cell's status, by its kind."""
    async with Scheduler.connect(url, Settings(tick_s=3600)) as scheduler:
        report = await scheduler.status()
        return {one.kind: one.commands for one in report.problems if one.cell}


async def test_an_epoch_that_the_api_has_seen_is_accepted(store_time: StoreTime, clean_store: str) -> None:
    async with api_over(clean_store) as api:
        epoch = await epoch_of_a_wrong_clock(api, store_time, clean_store)
        answer = await raise_above(api, epoch)
        assert (answer.status_code, answer.json()["outcome"]) == (200, "OK"), answer.text
        assert int(answer.json()["epoch"].partition("-")[0]) > int(epoch.partition("-")[0])
        assert await api.attested() == answer.json()["epoch"]


async def test_a_restarted_api_refuses_it_and_an_operator_helps(store_time: StoreTime, clean_store: str) -> None:
    async with api_over(clean_store) as api:
        epoch = await epoch_of_a_wrong_clock(api, store_time, clean_store)
    async with api_over(clean_store) as api:
        command = f"redsched init --above {epoch}"
        problem = check_problem(await raise_above(api, epoch), 409, "claim-state")
        assert "this API has not seen it" in problem["detail"]
        assert problem["detail"].endswith(command)
        assert (await kinds(clean_store))["epoch-refused"] == (command,)
        ran = run(*command.split()[1:], "--url", clean_store).check()
        assert ran.output.endswith(f", which is above {epoch}\n")
        assert "epoch-refused" not in await kinds(clean_store)

        async def is_accepted() -> bool:
            outcome: str = (await raise_above(api, epoch)).json().get("outcome", "")
            return outcome == "ALREADY_DONE"

        await wait_until(is_accepted)
        assert int((await api.attested()).partition("-")[0]) > int(epoch.partition("-")[0])
