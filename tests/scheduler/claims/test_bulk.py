"""Bulk verbs on claims: one result per claim, in pages, with limited concurrency, and only with a filter."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from redsched import BulkOutcome, BulkPage, ClaimFilter, InvalidRequest, NotFound, Request, Scheduler
from redsched.errors import NoValidHost, StoreUnavailable
from redsched.model import Claim, ClaimStatus, ListedState
from redsched.model.records.pages import Page
from redsched.scheduler.claims.bulk import AT_ONCE
from redsched.store.cell import CellStore
from redsched.store.codec.replies import ScriptResult
from redsched.store.commands.claims import ClaimCommands
from tests.scheduler.conftest import report_all, report_of
from tests.scheduler.working import Work, at_work
from tests.support.builders.cells import raw_client

WEB = ClaimFilter(project="web")


@pytest.fixture
async def claims(scheduler: Scheduler) -> list[str]:
    """Claim 2 VCPU four times on h1, h2 and h3, three times for project web and once for db; return the ids."""
    for name, project in (("a", "web"), ("b", "web"), ("c", "web"), ("d", "db")):
        await scheduler.select(Request({"VCPU": 2}, project=project, claim_ids=(name,), consumer=f"for-{name}"))
    return ["a", "b", "c", "d"]


@pytest.fixture
async def raw(clean_store: str) -> AsyncIterator[Any]:
    async with raw_client(clean_store) as client:
        yield client


def outcomes(page: BulkPage) -> dict[str, str]:
    return {one.claim_id: str(one.outcome) for one in page.results}


async def living(scheduler: Scheduler) -> set[str]:
    return {one.claim_id for one in (await scheduler.claims.list()).items}


async def test_all_of_a_project_are_released_and_no_other(scheduler: Scheduler, claims: list[str]) -> None:
    """A claim whose work runs is ending until its host reports the end; with force it is freed at once."""
    running = await scheduler.claims.get("b")
    await scheduler.claims.confirm("b", running.token)
    found = await scheduler.bulk.release(WEB)
    assert outcomes(found) == {"a": "released", "b": "ending", "c": "released"}
    assert await living(scheduler) == {"b", "d"}
    assert outcomes(await scheduler.bulk.release(WEB, force=True)) == {"b": "released"}
    assert await living(scheduler) == {"d"}


@pytest.mark.parametrize("verb", ["release", "renew", "shelve"])
async def test_a_dry_run_shows_what_is_meant_and_does_nothing(
    scheduler: Scheduler, claims: list[str], raw: Any, verb: str
) -> None:
    before = [await raw.hgetall(f"rs:{{c1}}:claim:{one}") for one in claims]
    more = {"lease_s": 7} if verb == "renew" else {}
    found = await getattr(scheduler.bulk, verb)(WEB, dry_run=True, **more)
    assert outcomes(found) == dict.fromkeys("abc", "selected")
    assert [await raw.hgetall(f"rs:{{c1}}:claim:{one}") for one in claims] == before


async def test_leases_are_renewed_where_there_are_any(scheduler: Scheduler, claims: list[str]) -> None:
    running = await scheduler.claims.get("b")
    await scheduler.claims.confirm("b", running.token)
    before = (await scheduler.claims.get("a")).expires_at_ms or 0
    found = await scheduler.bulk.renew(WEB, lease_s=3600)
    assert outcomes(found) == {"a": "renewed", "b": "unchanged", "c": "renewed"}
    assert ((await scheduler.claims.get("a")).expires_at_ms or 0) > before + 3_000_000


async def test_claims_are_shelved_and_unshelved(scheduler: Scheduler, claims: list[str]) -> None:
    assert outcomes(await scheduler.bulk.shelve(WEB)) == dict.fromkeys("abc", "shelved")
    assert await living(scheduler) == {"d"}
    again, fresh = await scheduler.migrations.unshelve("a", 0)
    assert (again.claim_id, again.state, fresh) == ("a", ClaimStatus.CLAIMED, True)


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (ClaimFilter(consumer="for-a"), {"a"}),
        (ClaimFilter(host="h1"), None),
        (ClaimFilter(zone="nowhere"), set()),
        (ClaimFilter(cell="c1", project="db"), {"d"}),
        (ClaimFilter(consumer=("for-a", "for-b"), project=["web", "db"]), {"a", "b"}),
    ],
)
async def test_filters_are_those_of_the_list(
    scheduler: Scheduler, claims: list[str], wanted: ClaimFilter, ids: set[str] | None
) -> None:
    found = await scheduler.bulk.release(wanted, dry_run=True)
    page = await scheduler.claims.list(
        wanted.host, wanted.project, wanted.consumer, wanted.state, wanted.zone, wanted.cell
    )
    listed = {one.claim_id for one in page.items}
    assert {one.claim_id for one in found.results} == listed
    assert ids is None or listed == ids


async def test_without_a_filter_nothing_is_done(scheduler: Scheduler, claims: list[str]) -> None:
    with pytest.raises(InvalidRequest, match="at least one of host, project"):
        await scheduler.bulk.release(ClaimFilter())
    with pytest.raises(NotFound, match="no cell 'other'"):
        await scheduler.bulk.release(ClaimFilter(cell="other"))
    with pytest.raises(InvalidRequest, match=r"lease_s must be a whole number from 1 to .*, not 0"):
        await scheduler.bulk.renew(WEB, lease_s=0)
    assert await living(scheduler) == set(claims)


async def test_what_ends_meanwhile_is_a_result(
    scheduler: Scheduler, claims: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the page was listed one claim is released and one is resized: the third is still shelved."""
    listed = scheduler.claims.page

    async def list_then_change(*given: Any) -> Page[Claim]:
        page = await listed(*given)
        await scheduler.claims.release("a")
        moved = await scheduler.claims.get("b")
        await scheduler.claims.resize("b", moved.token, {"VCPU": 1})
        return page

    monkeypatch.setattr(scheduler.claims, "page", list_then_change)
    found = await scheduler.bulk.shelve(WEB)
    assert outcomes(found) == {"a": "refused", "b": "refused", "c": "shelved"}
    assert {one.claim_id: one.problem.problem for one in found.results if one.problem} == {
        "a": "claim-state",
        "b": "stale-token",
    }


async def test_pages_continue_where_the_last_one_ended(scheduler: Scheduler, claims: list[str]) -> None:
    """The next page works although the claims of the first one no longer exist."""
    first = await scheduler.bulk.release(WEB, limit=2)
    assert (len(first.results), first.next is None) == (2, False)
    rest = await scheduler.bulk.release(WEB, limit=2, after=first.next or "")
    assert (len(rest.results), rest.next) == (1, None)
    assert await living(scheduler) == {"d"}


async def test_many_are_under_way_at_once_and_not_too_many(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Scheduler.connect(clean_store) as scheduler:
        await scheduler.init()
        await report_all(scheduler, [report_of("h1", VCPU=1000)])
        await scheduler.select(Request({"VCPU": 1}, count=3 * AT_ONCE, project="web"))
        give_back, under_way = scheduler.claims.give_back, list[int]()
        now = 0

        async def counted(*given: Any) -> ScriptResult:
            nonlocal now
            now += 1
            under_way.append(now)
            try:
                return await give_back(*given)
            finally:
                now -= 1

        monkeypatch.setattr(scheduler.claims, "give_back", counted)
        found = await scheduler.bulk.release(WEB)
        assert outcomes(found) == dict.fromkeys(outcomes(found), "released")
        assert (len(found.results), max(under_way)) == (3 * AT_ONCE, AT_ONCE)


async def test_a_store_that_is_gone_is_not_waited_for_by_every_claim(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Scheduler.connect(clean_store) as scheduler:
        await scheduler.init()
        await report_all(scheduler, [report_of("h1", VCPU=1000)])
        await scheduler.select(Request({"VCPU": 1}, count=2 * AT_ONCE, project="web"))
        tried = list[str]()

        async def gone(_: CellStore, __: str, claim_id: str, *___: Any, **more: Any) -> ScriptResult:
            tried.append(claim_id)
            await asyncio.sleep(0)
            raise StoreUnavailable("the store is gone")

        monkeypatch.setattr(ClaimCommands, "release", gone)
        found = await scheduler.bulk.release(WEB)
        assert {one.outcome for one in found.results} == {BulkOutcome.REFUSED}
        assert (len(found.results), len(tried)) == (2 * AT_ONCE, AT_ONCE)


# Claims with several placements, or none

MINE = Request({"VCPU": 2}, claim_ids=("mine",), project="web", max_attempts=3)


async def moving(work: Work) -> None:
    """Have `mine` run on h0 with a move to h1 under way."""
    claim = await work.active(MINE)
    target = await work.scheduler.claims.move("mine", claim.token)
    assert target.host == "h1"


@pytest.mark.parametrize("wanted", [WEB, ClaimFilter(host="h0"), ClaimFilter(host="h1")])
async def test_a_claim_that_is_being_moved_is_released_whole(clean_store: str, wanted: ClaimFilter) -> None:
    """A filter on either host finds it: the target is freed, and the source host is asked to stop the work."""
    async with at_work(clean_store, 4, 3) as work:
        await moving(work)
        found = await work.scheduler.bulk.release(wanted)
        assert [(one.claim_id, one.outcome) for one in found.results] == [("mine", "ending")]
        assert await work.held() == {"h0": ["mine"]}
        await work.settle()
        assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.ENDED
        await work.is_sound()


async def test_of_a_retry_that_is_being_moved_nothing_is_left(clean_store: str) -> None:
    """The token of its main placement, itself an unconfirmed retry, would release only that placement."""
    async with at_work(clean_store, 4, 3, 2) as work:
        await pending(work)
        await work.sweep()
        await work.scheduler.claims.move("mine", (await work.scheduler.claims.get("mine")).token)
        assert len(await work.held()) == 2
        assert outcomes(await work.scheduler.bulk.release(WEB)) == {"mine": "released"}
        assert await work.held() == {}
        assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.ENDED


async def test_a_claim_that_has_moved_is_on_its_old_host_until_its_work_is_gone_there(clean_store: str) -> None:
    """A filter on the old host releases it; `state` is compared with the placement there, which is ending."""
    async with at_work(clean_store, 4, 3) as work:
        await moving(work)
        await work.work([1])
        await work.sweep()
        assert (await work.scheduler.claims.get("mine")).host == "h1"
        running = ClaimFilter(host="h0", state=ClaimStatus.ACTIVE)
        assert outcomes(await work.scheduler.bulk.release(running)) == {}
        assert outcomes(await work.scheduler.bulk.release(ClaimFilter(host="h0"))) == {"mine": "ending"}
        assert {one.state for one in (await work.scheduler.claims.get("mine")).placements} == {ClaimStatus.ENDING}


async def test_the_lease_of_a_target_is_renewed_by_its_host(clean_store: str) -> None:
    async with at_work(clean_store, 4, 3) as work:
        await moving(work)
        assert outcomes(await work.scheduler.bulk.renew(WEB, 3600)) == {"mine": "unchanged"}
        assert outcomes(await work.scheduler.bulk.renew(ClaimFilter(host="h1"), 3600)) == {"mine": "renewed"}


async def pending(work: Work) -> Claim:
    """Have `mine` fail on h0 and wait to be placed again; return it."""
    await work.scheduler.select(MINE)
    claim = await work.scheduler.claims.get("mine")
    await work.store.claims.fail(claim.host, "mine", claim.token, by_host=True)
    claim = await work.scheduler.claims.get("mine")
    assert (claim.state, claim.placements) == (ClaimStatus.PENDING, ())
    return claim


PENDING = ClaimFilter(state=ClaimStatus.PENDING)


@pytest.mark.parametrize("wanted", [WEB, PENDING, ClaimFilter(cell="c1")])
async def test_a_pending_claim_is_released(clean_store: str, wanted: ClaimFilter) -> None:
    """It is not placed again afterwards."""
    async with at_work(clean_store, 4, 3) as work:
        await pending(work)
        assert outcomes(await work.scheduler.bulk.release(wanted)) == {"mine": "released"}
        await work.settle()
        assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.ENDED
        assert await work.held() == {}


async def test_a_pending_claim_is_shelved_and_has_no_lease_to_renew(clean_store: str) -> None:
    async with at_work(clean_store, 4, 3) as work:
        await pending(work)
        [renewed] = (await work.scheduler.bulk.renew(PENDING, 3600)).results
        assert renewed.problem
        assert renewed.problem.detail.startswith("claim mine is pending")
        assert outcomes(await work.scheduler.bulk.shelve(PENDING)) == {"mine": "shelved"}
        assert (await work.scheduler.claims.unshelve("mine")).state is ClaimStatus.CLAIMED


@pytest.mark.parametrize(
    "wanted", [ClaimFilter(host="h0"), ClaimFilter(zone="az1"), ClaimFilter(state=ClaimStatus.CLAIMED)]
)
async def test_a_pending_claim_is_on_no_host(clean_store: str, wanted: ClaimFilter) -> None:
    async with at_work(clean_store, 4, 3) as work:
        await pending(work)
        assert outcomes(await work.scheduler.bulk.release(wanted)) == {}


async def test_a_pending_claim_that_is_placed_meanwhile_is_left_alone(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(clean_store, 4, 3) as work:
        await pending(work)
        listed = work.scheduler.claims.page

        async def list_then_place(*given: Any) -> Page[Claim]:
            page = await listed(*given)
            await work.sweep()
            return page

        monkeypatch.setattr(work.scheduler.claims, "page", list_then_place)
        [result] = (await work.scheduler.bulk.release(PENDING)).results
        assert result.problem
        assert result.problem.problem == "stale-token"
        assert await work.held() == {"h1": ["mine"]}


async def test_pending_claims_come_first_in_pages(clean_store: str) -> None:
    """A claim that is placed while pages are read is therefore listed once more, under its host."""
    async with at_work(clean_store, 9) as work:
        for name in "abcd":
            await work.scheduler.select(Request({"VCPU": 1}, claim_ids=(name,), max_attempts=3))
        for name in "bd":
            claim = await work.scheduler.claims.get(name)
            await work.store.claims.fail("h0", name, claim.token, by_host=True)
        pages, after = list[list[str]](), ""
        while True:
            page = await work.scheduler.claims.list(limit=1, after=after)
            pages.append([one.claim_id for one in page.items])
            if page.next is None:
                break
            after = page.next
        assert pages == [["b"], ["d"], ["a"], ["c"]]


SHELVED = ClaimFilter(state=ListedState.SHELVED)


async def test_shelved_claims_are_listed_in_pages_and_by_filter(scheduler: Scheduler, claims: list[str]) -> None:
    await scheduler.bulk.shelve(WEB)
    first = await scheduler.claims.list(state=ListedState.SHELVED, limit=2)
    rest = await scheduler.claims.list(state=ListedState.SHELVED, limit=2, after=first.next or "")
    assert ([one.claim_id for one in (*first.items, *rest.items)], rest.next) == (["a", "b", "c"], None)
    assert [one.claim_id for one in (await scheduler.claims.page(replace(SHELVED, consumer="for-b"), 9, "")).items] == [
        "b"
    ]
    assert not (await scheduler.claims.page(replace(SHELVED, project="db"), 9, "")).items
    await scheduler.claims.unshelve("b")
    assert outcomes(await scheduler.bulk.release(SHELVED)) == {"a": "released", "c": "released"}
    assert not (await scheduler.claims.page(SHELVED, 9, "")).items
    assert await living(scheduler) == {"b", "d"}


async def test_shelved_claims_are_unshelved_where_there_is_room(scheduler: Scheduler, claims: list[str]) -> None:
    """There is capacity for one; the others are refused, and the next call finds them again."""
    await scheduler.bulk.shelve(WEB)
    host = (await scheduler.claims.get("d")).host
    for name in {"h1", "h2", "h3"} - {host}:
        await scheduler.hosts.disable(name)
    assert outcomes(await scheduler.bulk.unshelve(WEB, dry_run=True)) == dict.fromkeys("abc", "selected")
    found = await scheduler.bulk.unshelve(WEB)
    assert sorted(outcomes(found).values()) == ["refused", "refused", "unshelved"]
    refused = {one.claim_id: one.problem for one in found.results if one.problem}
    assert all(isinstance(error, NoValidHost) for error in refused.values())
    assert outcomes(await scheduler.bulk.unshelve(WEB)) == dict.fromkeys(refused, "refused")
    for wanted in (ClaimFilter(), ClaimFilter(state=ListedState.ACTIVE)):
        with pytest.raises(InvalidRequest):
            await scheduler.bulk.unshelve(wanted)


async def test_what_is_being_shelved_is_not_shelved_yet(scheduler: Scheduler, claims: list[str]) -> None:
    running = await scheduler.claims.get("a")
    await scheduler.claims.confirm("a", running.token)
    await scheduler.claims.shelve("a", running.token)
    assert not (await scheduler.claims.page(SHELVED, 9, "")).items
    assert [one.claim_id for one in (await scheduler.claims.list(state=ClaimStatus.ENDING)).items] == ["a"]


def test_filters_that_can_find_nothing_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="unknown state 'actve': use pending, claimed"):
        ClaimFilter(state=["active", "actve"])
    with pytest.raises(InvalidRequest, match="ended claims are not listed"):
        ClaimFilter(state=ClaimStatus.ENDED)
    for host, zone in (("h1", None), (None, "az1")):
        with pytest.raises(InvalidRequest, match="on no host"):
            ClaimFilter(host=host, zone=zone, state=ListedState.SHELVED)


@pytest.mark.parametrize("verb", ["release", "renew", "shelve"])
async def test_a_misspelt_host_is_not_one_without_claims(scheduler: Scheduler, claims: list[str], verb: str) -> None:
    more = {"lease_s": 7} if verb == "renew" else {}
    with pytest.raises(NotFound, match="no host 'nonesuch'"):
        await getattr(scheduler.bulk, verb)(ClaimFilter(host="nonesuch", project="web"), **more)
    assert await living(scheduler) == set(claims)
