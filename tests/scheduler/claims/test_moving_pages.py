"""Pages of claims that move meanwhile: a list and a verb on many leave none out, and end."""

import pytest

from redsched import ClaimFilter, Request, Scheduler
from redsched.errors import InvalidRequest
from redsched.model import Claim, EndReason
from redsched.scheduler.claims.cursor import MOST_PASSES
from tests.scheduler.conftest import report_all, report_of

WEB = ClaimFilter(project="web")
HOSTS = {"a": "h1", "b": "h1", "c": "h2", "d": "h3", "e": "h3"}


@pytest.fixture
async def placed(scheduler: Scheduler) -> Scheduler:
    """Claim 1 VCPU on h1 (a, b), h2 (c) and h3 (d, e), for project web; all are active."""
    for host in ("h1", "h2", "h3"):
        await only(scheduler, {host})
        for name in (one for one, its in HOSTS.items() if its == host):
            await scheduler.select(Request({"VCPU": 1}, project="web", claim_ids=(name,)))
            await scheduler.claims.confirm(name, (await scheduler.claims.get(name)).token)
    await only(scheduler, {"h1", "h2", "h3"})
    return scheduler


async def only(scheduler: Scheduler, hosts: set[str]) -> None:
    """Let these hosts take claims, and no others."""
    for name in ("h1", "h2", "h3"):
        await (scheduler.hosts.enable if name in hosts else scheduler.hosts.disable)(name)
    await scheduler.cells.refresh()


async def move(scheduler: Scheduler, name: str, host: str) -> None:
    """Move a claim, whose work stops at its source at once."""
    before = await scheduler.claims.get(name)
    await scheduler.claims.move(name, before.token, hosts=frozenset((host,)))
    target = (await scheduler.claims.get(name)).target
    assert target is not None
    cell = scheduler.cells.named("c1").store
    await cell.claims.confirm(host, name, target.token)
    await cell.claims.gone(before.host, name, before.token, EndReason.MOVED, {})
    assert (await scheduler.claims.get(name)).hosts == (host,)


async def rest(scheduler: Scheduler, after: str | None, wanted: ClaimFilter = WEB) -> list[Claim]:
    """Return the claims of all further pages."""
    found: list[Claim] = []
    while after is not None:
        page = await scheduler.claims.page(wanted, 2, after)
        found += page.items
        after = page.next
    return found


async def test_a_claim_that_moves_to_a_host_that_was_passed_is_released(placed: Scheduler) -> None:
    first = await placed.bulk.release(WEB, force=True, limit=2)
    await move(placed, "e", "h1")
    after, released = first.next, [one.claim_id for one in first.results]
    while after is not None:
        page = await placed.bulk.release(WEB, force=True, limit=2, after=after)
        released += [one.claim_id for one in page.results]
        after = page.next
    assert sorted(released) == sorted(HOSTS)
    assert (await placed.claims.list(project="web")).items == ()


async def test_it_is_listed(placed: Scheduler) -> None:
    first = await placed.claims.page(WEB, 2, "")
    await move(placed, "e", "h1")
    found = [*first.items, *await rest(placed, first.next)]
    assert sorted(one.claim_id for one in found) == sorted(HOSTS)
    assert [(one.claim_id, one.host) for one in found][-1] == ("e", "h1")


async def test_so_is_one_that_moves_again(placed: Scheduler) -> None:
    """While the claims that had moved are listed."""
    await report_all(placed, [report_of("h0", VCPU=8)])
    first = await placed.claims.page(WEB, 2, "")
    await move(placed, "d", "h1")
    await move(placed, "e", "h1")
    second = await placed.claims.page(WEB, 2, first.next or "")
    assert [one.claim_id for one in second.items] == ["c", "d"]
    await move(placed, "e", "h0")
    found = [one.claim_id for one in await rest(placed, second.next)]
    assert "e" in found


async def test_and_one_that_loses_its_place(placed: Scheduler) -> None:
    """Claims without a place come first: a claim that has none since the list began would come nowhere."""
    first = await placed.claims.page(WEB, 2, "")
    claim = await placed.claims.get("e")
    await placed.cells.named("c1").store.claims.fail("h3", "e", claim.token, by_host=True)
    later = await placed.claims.get("e")
    found = [one.claim_id for one in (*first.items, *await rest(placed, first.next))]
    assert ("e" in found) == later.is_live
    assert set(found) >= set("abcd")


async def test_a_verb_goes_on_if_a_claim_moves_while_it_is_carried_out(
    placed: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its old token is refused, but no claim is left when there is no further page."""
    page = placed.bulk._claims.page
    moved: list[bool] = []

    async def then_move(*args: object) -> object:
        found = await page(*args)  # type: ignore[arg-type]
        if not moved:
            moved.append(True)
            await move(placed, "e", "h1")
        return found

    monkeypatch.setattr(placed.bulk._claims, "page", then_move)
    after: str | None = ""
    while after is not None:
        after = (await placed.bulk.release(WEB, force=True, limit=100, after=after)).next
    assert (await placed.claims.list(project="web")).items == ()


async def test_what_does_not_move_comes_once(placed: Scheduler) -> None:
    """Whatever else happens to it, and to others."""
    first = await placed.claims.page(WEB, 2, "")
    await placed.claims.resize("a", (await placed.claims.get("a")).token, {"VCPU": 2})
    await placed.select(Request({"VCPU": 1}, project="db", claim_ids=("other",)))
    found = [one.claim_id for one in (*first.items, *await rest(placed, first.next))]
    assert found == list(HOSTS)


async def test_a_list_ends_though_claims_move_all_the_time(placed: Scheduler) -> None:
    after, pages = (await placed.claims.page(WEB, 2, "")).next, 1
    while after is not None:
        await move(placed, "e", "h1" if pages % 2 else "h3")
        after, pages = (await placed.claims.page(WEB, 2, after)).next, pages + 1
    assert pages <= 3 * MOST_PASSES


async def test_a_claim_is_found_though_the_changes_are_no_longer_kept(placed: Scheduler) -> None:
    """A scheduler that has just started, or that is far behind, looks at all claims again."""
    first = await placed.claims.page(WEB, 2, "")
    await move(placed, "e", "h1")
    await placed.cells.refresh()
    placed.cells.named("c1").updater.recent.clear()
    found = [one.claim_id for one in (*first.items, *await rest(placed, first.next))]
    assert sorted(found) == sorted(HOSTS)


async def test_a_new_epoch_lists_all_claims_again(placed: Scheduler) -> None:
    """While hosts attest, a list may not see their claims."""
    first = await placed.claims.page(WEB, 2, "")
    cell = placed.cells.named("c1")
    await cell.store.raise_epoch(cell.updater.epoch)
    found = [one.claim_id for one in await rest(placed, first.next)]
    assert sorted(found[-5:]) == sorted(HOSTS)


async def test_the_next_of_a_former_release_is_understood(placed: Scheduler) -> None:
    """Nobody knows what has moved since, so all claims come once more in the end."""
    await move(placed, "e", "h1")
    found = [one.claim_id for one in await rest(placed, "h1:b")]
    assert sorted(found[:-5]) == ["c", "d", "e"]
    assert sorted(found[-5:]) == sorted(HOSTS)


TWICE = "c1:1-a:5,c1:1-a:6"


@pytest.mark.parametrize(
    "bad", ["x", ":", "1~c1~~h1:a", "1~c1:5~~h1:a", "0~~~h1:a", "11~~~h1:a", "1~~h1:a", f"1~{TWICE}~~h1:a", "1~~~h1"]
)
async def test_what_is_no_next_is_refused(scheduler: Scheduler, bad: str) -> None:
    with pytest.raises(InvalidRequest, match="not the `next` of a page"):
        await scheduler.claims.page(WEB, 2, bad)
