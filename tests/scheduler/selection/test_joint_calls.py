"""Joint claim calls: requests that arrive together share one script call, and remain independent of each other."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from redsched import pacing
from redsched.errors import NoValidHost, OutcomeUnknown, QuotaExceeded, RedschedError, StoreUnavailable
from redsched.model import ClaimStatus, GroupPolicy, Quota, Request, ServerGroup
from redsched.model.records.selections import Selection
from redsched.scheduler import Scheduler
from redsched.scheduler.selection.joint_calls import MAX_REQUESTS, JointCalls
from redsched.store.client.script_client import ScriptClient
from redsched.store.client.scripts import load_all
from redsched.store.codec.keys import Kind
from redsched.store.codec.wire import Reply
from tests.scheduler.conftest import report_all, report_of

ONE = {"VCPU": 1}
DRY_RUN = Request(ONE, claim=False)


@pytest.fixture(autouse=True)
def turns_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decide on all requests that arrive together in one turn of the loop, however slow the machine is."""
    monkeypatch.setattr(pacing, "TURN_S", float("inf"))


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of members of each call of the claim script, in the order of the calls."""
    called: list[int] = []
    run, place = ScriptClient.run, load_all()["claim"].arguments.names.index("members")

    async def counted(
        self: ScriptClient, name: str, keys: Sequence[str], arguments: Sequence[str | int], *rest: Any
    ) -> Reply:
        if name == "claim":
            called.append(int(arguments[place]))
        return await run(self, name, keys, arguments, *rest)

    monkeypatch.setattr(ScriptClient, "run", counted)
    return called


async def select_all(scheduler: Scheduler, *requests: Request) -> list[Selection | RedschedError]:
    """Select for all requests at once. Returns the selection of each, or the error that it got.

    The first of several requests would find the scheduler idle, and be claimed without waiting for others.
    """

    async def one(request: Request) -> Selection | RedschedError:
        try:
            return (await scheduler.select(request)).selections[0]
        except RedschedError as error:
            return error

    busy = asyncio.create_task(scheduler.select(DRY_RUN))
    answers = await asyncio.gather(*map(one, requests))
    await busy
    return answers


def placed(answers: list[Selection | RedschedError]) -> list[Selection]:
    return [one for one in answers if isinstance(one, Selection)]


async def test_requests_that_ask_for_the_same_share_a_call(scheduler: Scheduler, members: list[int]) -> None:
    """Each has a claim of its own: no gang, and releasing one leaves the others."""
    answers = placed(await select_all(scheduler, *[Request(ONE)] * 6))
    assert members == [6]
    ids = [str(one.claim_id) for one in answers]
    assert len(set(ids)) == 6
    await scheduler.claims.release(ids[0])
    claims = {one.claim_id: one for one in (await scheduler.claims.list()).items}
    assert set(claims) == set(ids[1:])
    assert {(one.gang, one.state) for one in claims.values()} == {("", ClaimStatus.CLAIMED)}
    assert {(one.claim_id, one.token, one.host) for one in answers[1:]} == {
        (one.claim_id, one.token, one.host) for one in claims.values()
    }


async def test_the_replica_is_exact_after_a_joint_reply(scheduler: Scheduler, members: list[int]) -> None:
    """Several claims on one host advance its row by as many versions, without a read of the feed."""
    answers = placed(await select_all(scheduler, *[Request({"VCPU": 1, "MEMORY_MB": 512})] * 5))
    assert members == [5]
    on = Counter(one.host for one in answers)
    cell = next(iter(scheduler.cells))
    columns = cell.updater.columns
    for stored in await cell.store.hosts.read(list(on)):
        row = columns.row(stored.name)
        assert row is not None
        assert str(columns.versions[row]) == stored.fields["version"]
        assert (
            str(columns.claimed["MEMORY_MB"][row]) == stored.fields["claimed.MEMORY_MB"] == str(512 * on[stored.name])
        )
        assert str(columns.claims[row]) == stored.fields["claims"]


async def test_different_requests_are_claimed_by_themselves(scheduler: Scheduler, members: list[int]) -> None:
    requests = [Request({"VCPU": 1}), Request({"VCPU": 2}), Request({"VCPU": 1}, consumer="ann")]
    assert len(placed(await select_all(scheduler, *requests))) == 3
    assert members == [1, 1, 1]


async def test_requests_of_different_owners_are_claimed_by_themselves(scheduler: Scheduler, members: list[int]) -> None:
    requests = [Request(ONE, owner=owner) for owner in ("alice", "bob", "alice", "")]
    answers = placed(await select_all(scheduler, *requests))
    assert sorted(members) == [1, 1, 2]
    claims = {one.claim_id: one.owner for one in (await scheduler.claims.list()).items}
    assert [claims[str(one.claim_id)] for one in answers] == ["alice", "bob", "alice", ""]


@pytest.mark.parametrize(
    "request_",
    [
        Request(ONE, count=2),
        Request(ONE, alternates=1),
        Request(ONE, server_group="apart"),
    ],
    ids=["count", "alternates", "anti-affinity"],
)
async def test_a_place_that_depends_on_others_is_claimed_by_itself(
    scheduler: Scheduler, members: list[int], request_: Request
) -> None:
    await scheduler.server_groups.put(ServerGroup("apart", GroupPolicy.ANTI_AFFINITY))
    await scheduler.explain(Request(ONE))
    assert len(placed(await select_all(scheduler, request_, request_))) == 2
    assert max(members) == request_.count


async def test_members_of_a_group_without_hard_rules_share_a_call(scheduler: Scheduler, members: list[int]) -> None:
    """The group counts all of them."""
    await scheduler.server_groups.put(ServerGroup("near", GroupPolicy.SOFT_AFFINITY))
    await scheduler.explain(Request(ONE))
    assert len(placed(await select_all(scheduler, *[Request(ONE, server_group="near")] * 3))) == 3
    assert members == [3]
    cell = next(iter(scheduler.cells))
    counted = cell.updater.columns.declared.groups["near"].members
    stored = await cell.store.declared.read(Kind.SERVER_GROUP, ["near"])
    assert (counted, stored["near"]["members"]) == (3, "3")


async def test_callers_ids_are_claimed_by_themselves(scheduler: Scheduler, members: list[int]) -> None:
    await select_all(scheduler, Request(ONE, claim_ids=("mine",)), Request(ONE, claim_ids=("yours",)))
    assert members == [1, 1]


async def test_one_that_does_not_fit_is_refused_alone(scheduler: Scheduler, members: list[int]) -> None:
    """The fleet has room for three requests of 4 VCPU, and for one of 2: the joint call of five fails as a whole."""
    answers = await select_all(scheduler, *[Request({"VCPU": 4})] * 5)
    assert members[0] == 5
    assert Counter(type(one) for one in answers) == {Selection: 4, NoValidHost: 1}
    stored = await next(iter(scheduler.cells)).store.hosts.read(["h1", "h2", "h3"])
    assert [host.fields["claimed.VCPU"] for host in stored] == ["8", "4", "4"]


async def test_a_quota_is_filled_to_its_limit(scheduler: Scheduler, members: list[int]) -> None:
    await scheduler.quotas.put(Quota("red", {"VCPU": 3}))
    answers = await select_all(scheduler, *[Request(ONE, project="red")] * 5)
    assert members[0] == 5
    assert Counter(type(one) for one in answers) == {Selection: 3, QuotaExceeded: 2}
    # With room for all, the joint call is counted in the quota too.
    await scheduler.quotas.put(Quota("red", {"VCPU": 6}))
    members.clear()
    answers = await select_all(scheduler, *[Request(ONE, project="red")] * 3)
    assert (members, len(placed(answers))) == ([3], 3)
    assert isinstance((await select_all(scheduler, Request(ONE, project="red")))[0], QuotaExceeded)


async def test_a_caller_that_has_left_gets_no_claim(
    scheduler: Scheduler, members: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves between its decision and the call, which is made for the others."""
    join, joined = JointCalls._join, list[object]()

    def joining(self: JointCalls, one: object) -> None:
        join(self, one)  # type: ignore[arg-type]
        joined.append(one)
        if len(joined) == 3:
            calls[1].cancel()

    monkeypatch.setattr(JointCalls, "_join", joining)
    busy = asyncio.create_task(scheduler.select(DRY_RUN))
    calls = [asyncio.create_task(scheduler.select(Request(ONE))) for _ in range(3)]
    found = await asyncio.gather(*calls, return_exceptions=True)
    await busy
    assert isinstance(found[1], asyncio.CancelledError)
    assert members == [2]
    assert len((await scheduler.claims.list()).items) == 2


async def test_a_request_that_finds_the_scheduler_idle_waits_for_no_others(
    scheduler: Scheduler, members: list[int]
) -> None:
    await asyncio.gather(*(scheduler.select(Request(ONE)) for _ in range(4)))
    assert members == [1, 3]


@pytest.mark.parametrize("error", [StoreUnavailable("no connection"), OutcomeUnknown("no reply")], ids=type)
async def test_every_caller_learns_that_the_store_is_gone(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, error: RedschedError
) -> None:
    async def gone(*_: object, **__: object) -> Reply:
        raise error

    monkeypatch.setattr(ScriptClient, "run", gone)
    answers = await select_all(scheduler, *[Request(ONE)] * 3)
    assert [type(one) for one in answers] == [type(error)] * 3
    if isinstance(error, OutcomeUnknown):
        ids = [one.facts.claim_ids for one in answers if isinstance(one, RedschedError)]
        assert len({claim_id for [claim_id] in ids}) == 3, "each learns its own id"


async def test_a_call_has_a_bounded_number_of_members(scheduler: Scheduler, members: list[int]) -> None:
    """A long call would hold up the store."""
    await report_all(scheduler, [report_of("large", VCPU=1000)])
    answers = await select_all(scheduler, *[Request(ONE)] * (2 * MAX_REQUESTS + 3))
    assert len(placed(answers)) == 2 * MAX_REQUESTS + 3
    assert sorted(members) == [3, MAX_REQUESTS, MAX_REQUESTS]
