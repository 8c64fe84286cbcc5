"""A quota over several cells: shares move to the cells that need them, and recover from crashes and data loss."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from hypothesis import given, strategies as st

from redsched.errors import NotFound, QuotaExceeded, Settling
from redsched.model import Claim, Exceeded, Quota, Request
from redsched.model.filters import UsageBy
from redsched.scheduler import Scheduler
from redsched.scheduler.quotas import shares
from redsched.scheduler.quotas.shares import QuotaShares, divided
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.commands.quotas import QuotaCommands
from tests.scheduler.conftest import report_all, report_of
from tests.scheduler.quotas.calls import scripts_about_claims
from tests.support.builders.cells import new_epoch, raw_client
from tests.support.waiting import wait_until

CELLS = ("a", "b", "c")
LIMIT = 12


@pytest.fixture
async def scheduler(clean_store: str) -> AsyncIterator[Scheduler]:
    """Yield a scheduler over cells a, b and c, each with a host of 64 VCPU, and a quota of 12 VCPU."""
    async with opened(clean_store) as found:
        await found.quotas.put(Quota("web", {"VCPU": LIMIT}))
        yield found


@asynccontextmanager
async def opened(url: str, cells: Iterable[str] = CELLS) -> AsyncIterator[Scheduler]:
    async with Scheduler.connect(url, Settings(cells=tuple(cells), pick_from=1, check_s=0)) as found:
        await found.init()
        await report_all(found, [report_of(f"{name}1", cell=name, VCPU=64) for name in cells])
        yield found


def web(cell: str, vcpu: int = 1, **more: Any) -> Request:
    return Request({"VCPU": vcpu}, project="web", hosts=frozenset((f"{cell}1",)), **more)


def store_of(scheduler: Scheduler, cell: str) -> CellStore:
    return scheduler.cells.named(cell).store


async def assert_exact(scheduler: Scheduler, vcpu: int) -> None:
    """Check that claims and quota agree on this usage, and that the cells' shares do not exceed the limit."""
    rows = await scheduler.usage((UsageBy.CLASS,))
    found = await scheduler.quotas.get("web")
    held = dict(rows[0].used).get("VCPU", 0) if rows else 0
    assert (held, found.used.get("VCPU", 0)) == (vcpu, vcpu)
    assert await all_shares(scheduler) <= found.limits["VCPU"]
    assert (await scheduler.audit()).problems == ()


async def all_shares(scheduler: Scheduler) -> int:
    """Return the sum of the cells' shares."""
    states = (await scheduler._enforcement.shares.read("web")).values()
    assert len({one.division for one in states}) == 1
    return sum(one.share["VCPU"] for one in states)


async def moving(scheduler: Scheduler) -> int:
    """Return the sum of the transfers that the giving cells have not closed yet."""
    states = (await scheduler._enforcement.shares.read("web")).values()
    return sum(transfer.amounts["VCPU"] for one in states for transfer in one.given.values())


async def test_all_of_the_limit_can_be_used_in_any_cell(scheduler: Scheduler) -> None:
    """Each cell starts with a third of it."""
    for cell in CELLS:
        found = [await scheduler.select(web(cell)) for _ in range(LIMIT)]
        for other in CELLS:
            with pytest.raises(QuotaExceeded, match="12 of 12 VCPU are used, 1 more"):
                await scheduler.select(web(other))
        await assert_exact(scheduler, LIMIT)
        for one in found:
            await scheduler.claims.release(str(one.selections[0].claim_id))
    await assert_exact(scheduler, 0)


async def test_sums_over_cells_are_of_several_moments(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a was read, the limit is released there and claimed in c: usage shows it twice, the quota does not."""
    first, last = (await scheduler.select(web("a", LIMIT))).selections[0], store_of(scheduler, "c")
    living_on = last.claims.unended_on

    async def late(hosts: Sequence[str]) -> AsyncIterator[list[Claim]]:
        await scheduler.claims.release(str(first.claim_id))
        await scheduler.select(web("c", LIMIT))
        async for page in living_on(hosts):
            yield page

    with monkeypatch.context() as patched:
        patched.setattr(last.claims, "unended_on", late)
        [row] = await scheduler.usage((UsageBy.CLASS,))
    assert row.used["VCPU"] == 2 * LIMIT
    await assert_exact(scheduler, LIMIT)


async def test_the_refusal_has_the_numbers_of_all_cells(scheduler: Scheduler) -> None:
    for cell in CELLS:
        await scheduler.select(web(cell, 3))
    for claim in (True, False):
        with pytest.raises(QuotaExceeded) as refused:
            await scheduler.select(web("b", 4, claim=claim))
        assert refused.value.facts.exceeded == (Exceeded("VCPU", 12, 9, 4),)
    await scheduler.select(web("b", 3))
    await assert_exact(scheduler, LIMIT)


async def test_a_claim_within_the_share_is_one_call(scheduler: Scheduler) -> None:
    with scripts_about_claims(scheduler) as called:
        await scheduler.select(web("b", 4))
    assert called == ["claim"]


async def test_many_at_once_in_all_cells_use_the_limit_up(scheduler: Scheduler) -> None:
    results = await asyncio.gather(*(scheduler.select(web(CELLS[n % 3])) for n in range(30)), return_exceptions=True)
    outcomes = Counter(type(one).__name__ for one in results)
    assert outcomes == {"Selections": LIMIT, "QuotaExceeded": 30 - LIMIT}
    await assert_exact(scheduler, LIMIT)


async def test_a_claim_that_grows_takes_of_other_cells_too(scheduler: Scheduler) -> None:
    one = (await scheduler.select(web("a", 4))).selections[0]
    grown = await scheduler.claims.resize(str(one.claim_id), str(one.token), {"VCPU": 12})
    await assert_exact(scheduler, LIMIT)
    with pytest.raises(QuotaExceeded, match="12 of 12 VCPU are used, 1 more"):
        await scheduler.claims.resize(grown.claim_id, grown.token, {"VCPU": 13})


async def test_limits_change_and_go(scheduler: Scheduler) -> None:
    """A limit below the usage ends no claim, but admits none until the usage is below it."""
    found = [(await scheduler.select(web(cell, 3))).selections[0] for cell in CELLS]
    view, new = await scheduler.quotas.put(Quota("web", {"VCPU": 5, "claims": 9}))
    assert (view.limits, view.used, new) == ({"VCPU": 5, "claims": 9}, {"VCPU": 9, "claims": 3}, False)
    await scheduler.claims.release(str(found[0].claim_id))
    for cell in CELLS:
        with pytest.raises(QuotaExceeded, match="6 of 5"):
            await scheduler.select(web(cell))
    await scheduler.claims.release(str(found[1].claim_id))
    await scheduler.select(web("a", 2))
    await assert_exact(scheduler, 5)
    await scheduler.quotas.put(Quota("web", {"VCPU": 20}))
    await scheduler.select(web("a", 15))
    await scheduler.quotas.delete("web")
    await scheduler.select(web("a", 15))
    with pytest.raises(NotFound):
        await scheduler.quotas.get("web")
    fields = await store_of(scheduler, "a").declared.read(Kind.QUOTA, ["web"])
    assert fields["web"].keys() <= {"seq", "version", "used.VCPU", "used.claims"}


# Crashes


async def killed_at(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, step: str) -> Any:
    """Cancel a scheduler at this step of a transfer to cell a; return the arguments of the step."""
    arguments: list[Any] = []

    async def killed(*given: Any, **_: Any) -> Any:
        arguments.extend(given)
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(QuotaCommands, step, killed)
        with pytest.raises(asyncio.CancelledError):
            await scheduler.select(web("a", LIMIT))
    assert await moving(scheduler) > 0
    return arguments


@pytest.mark.parametrize("step", ["take", "close_transfer"])
async def test_what_was_on_its_way_is_not_lost_with_its_scheduler(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """It died before the other cell took the share, or before the giver closed the transfer; no share counts twice."""
    arguments = await killed_at(scheduler, monkeypatch, step)
    assert await all_shares(scheduler) + (await moving(scheduler) if step == "take" else 0) == LIMIT
    await scheduler._enforcement.shares.sweep()
    assert await moving(scheduler) > 0, "whoever is at it has some seconds"
    monkeypatch.setattr(shares, "RETURNED_AFTER_MS", -1_000_000)
    await scheduler._enforcement.shares.sweep()
    assert (await moving(scheduler), await all_shares(scheduler)) == (0, LIMIT)
    if step == "take":
        assert (await QuotaCommands.take(*arguments)).outcome is Outcome.ENDED, "a late copy adds nothing"
    assert await all_shares(scheduler) == LIMIT
    await scheduler.select(web("a", LIMIT))
    await assert_exact(scheduler, LIMIT)


async def test_who_needs_what_was_on_its_way_does_not_wait_for_a_sweep(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    await killed_at(scheduler, monkeypatch, "take")
    monkeypatch.setattr(shares, "RETURNED_AFTER_MS", -1_000_000)
    await scheduler.select(web("a", LIMIT))
    await assert_exact(scheduler, LIMIT)


@pytest.mark.parametrize("step", ["close", "share"])
async def test_a_division_that_nobody_finishes_is_made_again(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, clean_store: str, step: str
) -> None:
    """Its scheduler died after it had closed some cells, or had given some of them a share."""
    await scheduler.select(web("b", 5))
    really, calls = getattr(QuotaCommands, step), list[str]()

    async def killed(self: QuotaCommands, *arguments: Any) -> Any:
        calls.append(self._cell.name)
        if self._cell.name == "b":
            raise asyncio.CancelledError
        return await really(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(QuotaCommands, step, killed)
        with pytest.raises(asyncio.CancelledError):
            await scheduler.quotas.put(Quota("web", {"VCPU": 9}))
    assert calls == (["a", "b"] if step == "close" else ["c", "b"])
    async with raw_client(clean_store) as raw:
        for cell in CELLS:  # so long ago that its scheduler no longer counts as being at work
            await raw.hset(store_of(scheduler, cell).keys.quota("web"), "closed_at_ms", 1)
    await scheduler.select(web("c", 4))
    with pytest.raises(QuotaExceeded, match="9 of 9"):
        await scheduler.select(web("a", 1))
    await assert_exact(scheduler, 9)


async def test_of_two_divisions_at_once_only_one_is_used(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is overtaken after it has closed the first cell, and closes no other cell."""
    monkeypatch.setattr(shares, "UNDER_WAY_MS", -1_000_000)
    division, really, calls = (await scheduler._enforcement.shares.read("web"))["a"].division, QuotaCommands.close, 0

    async def overtaken(self: QuotaCommands, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        answer = await really(self, *arguments)
        if calls == 1:
            await QuotaShares(scheduler.cells).divide("web")
            await scheduler.select(web("a", 4))
        return answer

    monkeypatch.setattr(QuotaCommands, "close", overtaken)
    await scheduler._enforcement.shares.divide("web", instead_of=division)
    assert calls == 5, "the second of the one fails, and all three of the other have succeeded"
    assert await all_shares(scheduler) == LIMIT
    await assert_exact(scheduler, 4)


async def test_a_division_that_stalls_until_its_quota_is_declared_again_admits_nothing(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has closed the first cell; the whole limit is used there before the quota is declared again."""
    stores, really, calls = [store_of(scheduler, cell) for cell in CELLS], QuotaCommands.close, 0

    async def declare() -> None:
        """Declare the quota anew, as a scheduler does that dies before it divides the limit."""
        for store in stores:
            await store.declared.delete_quota("web")
        await scheduler.cells.catch_up()
        if calls:
            await scheduler.select(web("a", LIMIT))
        for store in stores:
            await store.declared.put_quota(Quota("web", {"VCPU": LIMIT}), CELLS)

    async def stalled(self: QuotaCommands, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        answer = await really(self, *arguments)
        if calls == 1:
            await declare()
        return answer

    await declare()
    with monkeypatch.context() as patched:
        patched.setattr(QuotaCommands, "close", stalled)
        await QuotaShares(scheduler.cells).divide("web")
    assert calls == 2, "the second cell is not closed any more"
    with pytest.raises(QuotaExceeded, match="12 of 12 VCPU are used, 1 more"):
        await scheduler.select(web("b"))
    await assert_exact(scheduler, LIMIT)


async def test_of_two_schedulers_on_a_slow_store_one_finishes_its_division(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, clean_store: str
) -> None:
    """Each call takes a second, so a division takes longer than another scheduler at first waits for it."""
    await store_of(scheduler, "b").declared.delete_quota("web")
    rivals = {name: QuotaShares(scheduler.cells) for name in ("one", "other")}
    key, looks, now_ms = store_of(scheduler, "a").keys.quota("web"), Counter[str](), 1_000_000

    def slow(step: str) -> None:
        really = getattr(QuotaCommands, step)

        async def call(self: QuotaCommands, *arguments: Any) -> Any:
            nonlocal now_ms
            (rival,) = rivals.keys() - {name.get()}
            looks[name.get()] += 1
            before = looks[rival]
            now_ms += 1000
            answer = await really(self, *arguments)
            if step == "close" and self._cell.name == "a" and answer[0].outcome is Outcome.OK:
                await raw.hset(key, "closed_at_ms", now_ms)  # by the clock of this test
            await wait_until(lambda: looks[rival] > before or bool(finished), 30.0, "the other one has looked")
            return answer

        monkeypatch.setattr(QuotaCommands, step, call)

    async def divide(me: str) -> None:
        name.set(me)
        for _ in range(500):
            await rivals[me].divide("web")
            looks[me] += 1
            if await rivals[me].is_divided("web"):
                finished.append(me)
            if finished:
                return

    name, finished = ContextVar[str]("name"), list[str]()
    async with raw_client(clean_store) as raw:
        monkeypatch.setattr(scheduler.cells.named("a").updater, "now_ms", lambda: now_ms)
        slow("close")
        slow("share")
        await asyncio.gather(*map(divide, rivals))
    assert finished


async def test_a_scheduler_does_not_wait_for_a_division_of_its_own(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was cancelled with some of the cells closed, and no other scheduler is dividing."""

    async def cut_off(*_: Any) -> Any:
        raise asyncio.CancelledError

    await store_of(scheduler, "b").declared.delete_quota("web")
    with monkeypatch.context() as patched:
        patched.setattr(QuotaCommands, "share", cut_off)
        with pytest.raises(asyncio.CancelledError):
            await scheduler._enforcement.shares.divide("web")
    await scheduler._enforcement.shares.divide("web")
    assert await all_shares(scheduler) == LIMIT


# Losses of data


async def test_a_cell_in_a_new_epoch_gets_a_share_once_its_hosts_have_attested(scheduler: Scheduler) -> None:
    """Until then the other cells keep their shares; in the end no cell has a smaller share than it uses."""
    for cell in CELLS:
        await scheduler.select(web(cell, 2))
    store = store_of(scheduler, "b")
    epoch = await new_epoch(store)
    with pytest.raises(Settling):
        await scheduler.select(web("b"))
    await scheduler.select(web("a", 2))
    with pytest.raises(Settling):
        await scheduler.quotas.get("web")
    await store.hosts.attest("b1", epoch)
    await scheduler.select(web("b", 4))
    with pytest.raises(QuotaExceeded, match="12 of 12"):
        await scheduler.select(web("c"))
    await assert_exact(scheduler, LIMIT)


async def test_a_rolled_back_giver_does_not_use_what_it_has_given(scheduler: Scheduler, clean_store: str) -> None:
    """Its data shows its former share again, while the other cell uses what it was given."""
    async with raw_client(clean_store) as raw:
        before = await raw.hgetall(store_of(scheduler, "b").keys.quota("web"))
        await scheduler.select(web("a", 10))
        await roll_back(scheduler, raw, "b", before)
    with pytest.raises(QuotaExceeded, match="10 of 12 VCPU are used, 4 more"):
        await scheduler.select(web("b", 4))
    await scheduler.select(web("b", 2))
    await assert_exact(scheduler, LIMIT)


async def roll_back(scheduler: Scheduler, raw: Any, cell: str, before: dict[str, str]) -> None:
    """Restore older quota fields of a cell, in a new epoch that its host has attested to."""
    store = store_of(scheduler, cell)
    await raw.delete(store.keys.quota("web"))
    await raw.hset(store.keys.quota("web"), mapping=before)
    await store.hosts.attest(f"{cell}1", await new_epoch(store))


async def test_an_overtaken_division_gives_no_share_to_cells_that_forgot_by_which(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, clean_store: str
) -> None:
    """Cells b and c are rolled back to the division it started from, but cell a has a share of the later one."""
    monkeypatch.setattr(shares, "UNDER_WAY_MS", -1_000_000)
    really, calls = QuotaCommands.close, 0
    async with raw_client(clean_store) as raw:
        before = {cell: await raw.hgetall(store_of(scheduler, cell).keys.quota("web")) for cell in "bc"}

        async def overtaken(self: QuotaCommands, *arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            answer = await really(self, *arguments)
            if calls == 1:
                await QuotaShares(scheduler.cells).divide("web")
                await scheduler.select(web("a", LIMIT))
                for cell, fields in before.items():
                    await roll_back(scheduler, raw, cell, fields)
            return answer

        monkeypatch.setattr(QuotaCommands, "close", overtaken)
        await scheduler._enforcement.shares.divide("web", instead_of=before["b"]["division"])
    with pytest.raises(QuotaExceeded, match="12 of 12"):
        await scheduler.select(web("b", 1))
    await assert_exact(scheduler, LIMIT)


async def test_a_cell_that_lost_its_declaration_gets_it_back(scheduler: Scheduler, clean_store: str) -> None:
    """The first cell has kept it, so nothing beyond the limit is claimed in the wiped one."""
    await scheduler.select(web("a", 10))
    async with raw_client(clean_store) as raw:
        await raw.delete(*[key async for key in raw.scan_iter(match="rs:{b}:*")])
    store = store_of(scheduler, "b")
    await store.init()
    epoch = (await store.tick()).epoch
    await report_all(scheduler, [report_of("b1", cell="b", VCPU=64)])
    await wait_until(lambda: scheduler.cells.named("b").updater.epoch == epoch)
    with pytest.raises(QuotaExceeded):
        await scheduler.select(web("b", 3))
    assert await store.declared.names(Kind.QUOTA) == ["web"]
    await scheduler.select(web("b", 2))
    await assert_exact(scheduler, LIMIT)


async def test_what_another_cell_still_has_of_a_quota_that_was_taken_back_goes(
    scheduler: Scheduler, clean_store: str
) -> None:
    """The scheduler that deleted the quota died after the first cell, whose declaration decides."""
    await store_of(scheduler, "a").declared.delete_quota("web")
    with pytest.raises(NotFound):
        await scheduler.quotas.get("web")
    await scheduler.cells.catch_up()
    await scheduler._enforcement.shares.sweep()
    assert [await store_of(scheduler, cell).declared.names(Kind.QUOTA) for cell in CELLS] == [[], [], []]
    await scheduler.select(web("b", LIMIT + 1))


async def test_a_cell_more_or_less_divides_again(clean_store: str) -> None:
    """Settings add or remove a cell: another cell does not raise the limit, and a single cell has all of it."""
    async with opened(clean_store, "a") as alone:
        await alone.quotas.put(Quota("web", {"VCPU": LIMIT}))
        await alone.select(web("a", 7))
    async with opened(clean_store, "ab") as both:
        await both.select(web("b", 5))
        for cell in "ab":
            with pytest.raises(QuotaExceeded, match="12 of 12"):
                await both.select(web(cell))
        await assert_exact(both, LIMIT)
    async with opened(clean_store, "a") as alone:
        await alone.select(web("a", 5))
        with pytest.raises(QuotaExceeded, match="12 of 12"):
            await alone.select(web("a"))


async def test_what_hosts_run_by_themselves_leaves_no_room_elsewhere(scheduler: Scheduler) -> None:
    """It is counted and never refused; after the next sweep no cell admits claims beyond the limit."""
    answer = await store_of(scheduler, "b").claims.report_local("b1", "own", {"VCPU": LIMIT}, "web")
    await scheduler._enforcement.shares.sweep()
    for cell in CELLS:
        with pytest.raises(QuotaExceeded, match="12 of 12"):
            await scheduler.select(web(cell))
    await store_of(scheduler, "b").claims.report_local("b1", "own", {"VCPU": 2}, "web", token=answer.facts[0])
    await scheduler.select(web("a", LIMIT - 2))
    await assert_exact(scheduler, LIMIT)


# Dividing


amounts = st.dictionaries(st.sampled_from(("VCPU", "claims")), st.integers(0, 50))


@given(limits=amounts, used=st.lists(amounts, min_size=1, max_size=5))
def test_shares_are_the_limit_and_no_less_than_what_is_used(limits: dict[str, int], used: list[dict[str, int]]) -> None:
    """Where the usage exceeds the limit, no cell has a share."""
    shares = divided(limits, used)
    for name, limit in limits.items():
        held, given_ = [one.get(name, 0) for one in used], [one.get(name, 0) for one in shares]
        if sum(held) <= limit:
            assert sum(given_) == limit
            assert all(share >= amount for share, amount in zip(given_, held, strict=True))
        else:
            assert not any(given_)
