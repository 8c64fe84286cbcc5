"""Lost replies: no call takes effect twice, and the caller gets the true outcome.

The proxy strikes chosen script calls of the writer. Every answer is compared with the server's data afterwards.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
import redis

from redsched.errors import NoValidHost, OutcomeUnknown
from redsched.model import AgentStamp, ClaimStatus, EndReason, HostReport, Inventory, Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.client.scripts import load_all
from redsched.store.codec.outcomes import Outcome
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.support.fleets.hosts import PlainHost, fleet
from tests.support.processes.proxy import Fault, Moment, Proxy, proxy
from tests.support.profiles import is_long
from tests.support.waiting import wait_until

PLANS = 20 if is_long() else 2
LOSSES = [fault for fault in Fault if fault is not Fault.NONE]
SILENT = {Fault.LATE_REQUEST, Fault.HOLD_REPLY}
"""The faults that only the writer's timeout detects. The others break the connection, or lose nothing."""
NOTICED_S, PATIENT_S = 0.5, 30.0
"""The timeout of a reply where silent faults are played, and elsewhere."""
ONE = {"VCPU": 1}
LIMITS = {"resend_for_s": 0.3, "select_timeout_s": 1.0}
"""How long calls are tried whose outcome is to remain unknown. The second includes the time before they are sent."""

pytestmark = pytest.mark.usefixtures("clean_store")


@dataclass(frozen=True, slots=True)
class Behind:
    """A scheduler behind a proxy, and direct access to its store."""

    proxy: Proxy
    scheduler: Scheduler
    behind: CellStore
    """The scheduler's cell, through the proxy."""
    cell: CellStore
    hosts: list[PlainHost]

    async def struck(self, fault: Fault, call: Awaitable[object]) -> object:
        """Return the answer of a call whose first script is struck; late copies have been run by then."""
        self.proxy.faults.append(fault)
        before = self.proxy.played[fault]
        answer = await call
        assert self.proxy.played[fault] == before + 1
        await asyncio.gather(*self.proxy.late)
        return answer

    def quiet(self) -> bool:
        """Return whether the scheduler has no call in progress."""
        return self.behind._cell.scripts.idle

    async def claimed(self) -> int:
        """Return the claimed VCPU of all hosts in the store."""
        return sum(int(host.fields.get("claimed.VCPU", "0")) for host in await self.cell.hosts.read(["h0", "h1", "h2"]))


@asynccontextmanager
async def behind_proxy(server: PrivateServer, folder: Path, *faults: Fault, **settings: float) -> AsyncIterator[Behind]:
    """Yield a scheduler over three hosts of 4 VCPU. It sweeps only at the start: later sweeps would be struck.

    `faults`: those that will be played.
    """
    quick = settings_for(*faults).model_copy(update=settings)
    async with Store.connect(server.url) as store, proxy(server.socket, folder) as between:
        cell = store.cell("c1")
        await cell.init()
        hosts = await fleet(cell, [4, 4, 4])
        async with Scheduler.connect(between.url, quick) as scheduler:
            between.strikes = is_of(
                "claim", "release", "accept", "confirm", "renew", "fail", "gone", "report", "attest"
            )
            yield Behind(between, scheduler, next(iter(scheduler.cells)).store, cell, hosts)
            between.always = Fault.NONE
            assert (await scheduler.audit()).problems == ()


def settings_for(*faults: Fault) -> Settings:
    """Return settings of a scheduler that gives up no call, and notices these faults.

    No read waits for another one's connection, since the limit of that wait is as short as that of a reply.
    """
    timeout_s = NOTICED_S if SILENT & set(faults) else PATIENT_S
    return Settings(
        reply_timeout_s=timeout_s, resend_for_s=60.0, select_timeout_s=60.0, catch_up_timeout_s=60.0, poll_s=0.01,
        tick_s=600.0, pool_size=32,
    )  # fmt: skip


def is_of(*names: str) -> Callable[[list[bytes]], bool]:
    """Return whether a command calls one of these scripts."""
    wanted = {load_all()[name].sha.encode() for name in names}
    return lambda command: command[0].startswith(b"EVALSHA") and command[1] in wanted


@pytest.mark.parametrize("fault", LOSSES)
async def test_a_claim_is_made_once(server: PrivateServer, tmp_path: Path, fault: Fault) -> None:
    """A claim whose request or reply is lost, late or cut is made once, and the answer names the host that has it."""
    async with behind_proxy(server, tmp_path, fault) as it:
        await it.struck(fault, it.scheduler.select(Request(ONE, claim_ids=("own",))))
        found = await it.struck(fault, it.scheduler.select(Request({"VCPU": 2})))
        again = await it.scheduler.select(Request(ONE, claim_ids=("own",)))
        assert not again.fresh
        stored = await it.cell.claims.read(await it.cell.audit.claim_ids())
        [other] = found.selections  # type: ignore[attr-defined]
        for said in (again.selections[0], other):
            assert (said.host, said.token) == (stored[str(said.claim_id)].host, stored[str(said.claim_id)].token)
        assert len(stored) == 2
        assert await it.claimed() == 3


@pytest.mark.parametrize("fault", LOSSES)
async def test_a_gang_is_made_once(server: PrivateServer, tmp_path: Path, fault: Fault) -> None:
    """The same for a request of several places: all of them are claimed, once."""
    async with behind_proxy(server, tmp_path, fault) as it:
        found = await it.struck(fault, it.scheduler.select(Request(ONE, count=5)))
        assert len({one.claim_id for one in found.selections}) == 5  # type: ignore[attr-defined]
        assert (await it.claimed(), len(await it.cell.audit.claim_ids())) == (5, 5)


@pytest.mark.parametrize("fault", LOSSES)
async def test_a_release_gives_back_once(server: PrivateServer, tmp_path: Path, fault: Fault) -> None:
    """A release replies that the claim has ended; its amount is freed once, not once for every copy of the call."""
    async with behind_proxy(server, tmp_path, fault) as it:
        kept = await it.scheduler.select(Request(ONE, hosts=frozenset({"h0"})))
        given = await it.scheduler.select(Request(ONE, hosts=frozenset({"h0"})))
        assert await it.struck(fault, it.scheduler.claims.release(str(given.selections[0].claim_id))) is True
        assert await it.claimed() == 1
        assert (await it.scheduler.claims.get(str(kept.selections[0].claim_id))).state is ClaimStatus.CLAIMED


@pytest.mark.parametrize("fault", LOSSES)
async def test_a_claims_life_continues_once(server: PrivateServer, tmp_path: Path, fault: Fault) -> None:
    """accept, confirm, release and gone each take effect once, and the reply says so."""
    async with behind_proxy(server, tmp_path, fault) as it:
        [one] = (await it.scheduler.select(Request(ONE))).selections
        assert one.claim_id is not None
        assert one.token is not None
        about = (one.host, one.claim_id, one.token)
        done = {Outcome.OK, Outcome.ALREADY_DONE}
        for call, state in (
            (it.behind.claims.accept(*about, 60), ClaimStatus.STARTING),
            (it.behind.claims.renew(*about, 60), ClaimStatus.STARTING),
            (it.behind.claims.confirm(*about), ClaimStatus.ACTIVE),
        ):
            assert (await it.struck(fault, call)).outcome in done  # type: ignore[attr-defined]
            assert (await it.scheduler.claims.get(one.claim_id)).state is state
        assert await it.struck(fault, it.scheduler.claims.release(one.claim_id)) is False
        assert await it.claimed() == 1
        gone = await it.struck(fault, it.behind.claims.gone(*about, EndReason.RELEASED, {"VCPU": 1}))
        assert gone.outcome in done  # type: ignore[attr-defined]
        assert await it.claimed() == 0
        [host] = await it.cell.hosts.read([one.host])
        assert host.fields["external.VCPU"] == "1"


@pytest.mark.parametrize("fault", LOSSES)
async def test_a_report_changes_the_host_once(server: PrivateServer, tmp_path: Path, fault: Fault) -> None:
    """A report and an attestation each raise the host's version once, however many copies of the call arrive."""
    async with behind_proxy(server, tmp_path, fault) as it:
        stamp = AgentStamp("journal-h9", "n1", 1)
        await it.struck(fault, it.behind.hosts.report(HostReport("h9", {"VCPU": Inventory(8)}), stamp))
        answer = await it.struck(fault, it.behind.hosts.attest("h9", "", stamp))
        assert answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE)  # type: ignore[attr-defined]
        before = int((await it.cell.hosts.read(["h9"]))[0].fields["version"])
        said = await it.struck(
            fault, it.behind.hosts.report(HostReport("h9", {"VCPU": Inventory(9)}), AgentStamp("journal-h9", "n1", 2))
        )
        assert said.version == before + 1  # type: ignore[attr-defined]
        [host] = await it.cell.hosts.read(["h9"])
        assert (host.fields["version"], host.fields["capacity.VCPU"]) == (str(before + 1), "9")
        found = await it.scheduler.select(Request({"VCPU": 9}))
        assert found.selections[0].host == "h9"


@pytest.mark.parametrize("seed", range(PLANS))
async def test_a_crowd_loses_nothing(server: PrivateServer, tmp_path: Path, seed: int) -> None:
    """Twenty concurrent callers request twelve places and release some, while about every fourth call is struck.

    Every answer agrees with the store, nothing is placed twice, and no request is refused while a place is free. In
    every other plan the callers ask for the same, so that many share a call.
    """
    rng = Random(seed)
    consumers = 2 if seed % 2 else 20
    async with behind_proxy(server, tmp_path, *LOSSES) as it:
        it.proxy.faults.extend(rng.choice(LOSSES) if rng.random() < 0.25 else Fault.NONE for _ in range(40))

        async def one(number: int) -> str | None:
            try:
                found = await it.scheduler.select(Request(ONE, consumer=f"k{number % consumers}"))
            except NoValidHost:
                return None
            return str(found.selections[0].claim_id)

        claimed = [claim_id for claim_id in await asyncio.gather(*map(one, range(20))) if claim_id]
        assert len(set(claimed)) == len(claimed) == await it.claimed() == 12
        released = rng.sample(claimed, 5)
        assert all(await asyncio.gather(*map(it.scheduler.claims.release, released)))
        await asyncio.gather(*it.proxy.late)
        assert await it.claimed() == 7
        held = {claim.claim_id for claim in (await it.scheduler.claims.list()).items}
        assert held == set(claimed) - set(released)


@asynccontextmanager
async def patient(server: PrivateServer) -> AsyncIterator[Scheduler]:
    """Yield a scheduler beside the proxy, for the calls that have to succeed however long they take."""
    async with Scheduler.connect(server.url, settings_for()) as scheduler:
        yield scheduler


@pytest.mark.parametrize("own_id", [True, False])
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("fault", [Fault.LOSE_REPLY, Fault.LOSE_REQUEST])
async def test_an_unknown_outcome_is_called_so(
    server: PrivateServer, tmp_path: Path, fault: Fault, limit: str, own_id: bool
) -> None:
    """If no reply arrives for too long, the caller learns that the outcome is unknown, with the ids for a retry.

    A retry with these ids gets the true outcome: the claim that was made before, or one that the retry makes. There is
    only one claim in either case.
    """
    async with behind_proxy(server, tmp_path, **{limit: LIMITS[limit]}) as it, patient(server) as again:
        it.proxy.always = fault
        with pytest.raises(OutcomeUnknown) as unknown:
            await it.scheduler.select(Request(ONE, claim_ids=("own",) if own_id else ()))
        it.proxy.always = Fault.NONE
        await wait_until(it.quiet, what="nothing is being sent again")
        ids = tuple(unknown.value.facts.claim_ids)
        assert (len(ids), ids == ("own",)) == (1, own_id)
        made = await it.claimed()
        # Calls in progress when the caller gave up may have run since: then exactly one claim was made.
        assert made in {Fault.LOSE_REPLY: (1,), Fault.LOSE_REQUEST: (0,) if limit == "resend_for_s" else (0, 1)}[fault]
        found = await again.select(Request(ONE, claim_ids=ids))
        assert found.fresh == (not made)
        assert (await it.claimed(), await it.cell.audit.claim_ids()) == (1, list(ids))


async def test_a_release_of_unknown_outcome_may_be_sent_again(server: PrivateServer, tmp_path: Path) -> None:
    """The release was executed and its replies were lost: a retry answers that the claim has ended."""
    async with behind_proxy(server, tmp_path, resend_for_s=LIMITS["resend_for_s"]) as it, patient(server) as other:
        [one] = (await other.select(Request(ONE))).selections
        it.proxy.always = Fault.LOSE_REPLY
        with pytest.raises(OutcomeUnknown):
            await it.scheduler.claims.release(str(one.claim_id))
        it.proxy.always = Fault.NONE
        assert await other.claims.release(str(one.claim_id)) is True
        assert await it.claimed() == 0


async def test_an_error_after_a_lost_reply_is_not_the_whole_truth(server: PrivateServer, tmp_path: Path) -> None:
    """The first copy was executed, and the store was full for the second: the outcome is unknown, not `unavailable`."""
    async with behind_proxy(server, tmp_path) as it:
        it.proxy.faults.append(Fault.LOSE_REPLY)
        with redis.Redis.from_url(server.url, protocol=2) as raw:

            def fill(moment: Moment, _: list[bytes]) -> None:
                if moment is Moment.HAS_RUN and it.proxy.played[Fault.LOSE_REPLY]:
                    raw.config_set("maxmemory", 1)

            it.proxy.watch = fill
            try:
                with pytest.raises(OutcomeUnknown):
                    await it.scheduler.select(Request(ONE, claim_ids=("mine",)))
            finally:
                it.proxy.watch = lambda _, __: None
                raw.config_set("maxmemory", 0)
        assert not (await it.scheduler.select(Request(ONE, claim_ids=("mine",)))).fresh
        assert await it.claimed() == 1
