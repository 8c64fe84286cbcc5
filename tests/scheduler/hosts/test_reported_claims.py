"""Claims in a host's report: local work, and completed resizes."""

from redsched.model import ClaimStatus, Request
from redsched.scheduler import Scheduler
from redsched.store.codec.replies import EndedPlacement
from redsched.store.store import Store
from tests.scheduler.conftest import report_of
from tests.support.builders.placements import held_claim

H1 = report_of("h1", VCPU=8, MEMORY_MB=8192)


async def test_a_report_by_the_new_token_is_the_hosts_word_on_a_resize(scheduler: Scheduler, clean_store: str) -> None:
    """For agents without access to Redis; until then, repeated reports with the old token change nothing."""
    placed = (await scheduler.select(Request({"VCPU": 4}, claim_ids=("mine",), hosts=frozenset({"h1"})))).selections[0]
    token = placed.token or ""
    await scheduler.claims.confirm("mine", token)
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        resized = (await cell.claims.resize("h1", "mine", token, {"VCPU": 2})).facts[0]
        await scheduler.hosts.report(H1, held=[held_claim("mine", token, ClaimStatus.ACTIVE, {"VCPU": 4}, digest="d")])
        assert (await cell.claims.read(["mine"]))["mine"].resizing_to == {"VCPU": 2}
        await scheduler.hosts.report(
            H1, held=[held_claim("mine", resized, ClaimStatus.ACTIVE, {"VCPU": 2}, digest="d")]
        )
        claim = (await cell.claims.read(["mine"]))["mine"]
    assert (claim.slots, claim.resizing_to) == ({"VCPU": 2}, {})


async def test_local_work_that_comes_back_under_its_id_is_claimed_again(scheduler: Scheduler) -> None:
    local = held_claim("console", "", ClaimStatus.ACTIVE, {"VCPU": 2}, digest="d")
    await scheduler.hosts.report(H1, held=[local])
    first = await scheduler.claims.get("console")
    await scheduler.hosts.report(H1, ended=[EndedPlacement("console", first.token)])
    await scheduler.hosts.report(H1, held=[local])
    second = await scheduler.claims.get("console")
    assert (second.state, second.token != first.token) == (ClaimStatus.ACTIVE, True)
