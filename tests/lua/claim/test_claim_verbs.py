"""accept, confirm, renew, fail, release, gone: what each verb does in each state of a claim, and its outcome."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from redsched.model import EndReason
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode, ScriptResult
from tests.support.builders.cells import (
    HOUR_S,
    IN_STATE,
    accepted_claim,
    active,
    claim_on,
    claimed,
    ended,
    everything,
    fields_of,
    make_due,
    new_epoch,
    nothing_written,
    open_host,
)

Verb = Callable[[CellStore, str, str, str], Awaitable[ScriptResult]]

VERBS: dict[str, Verb] = {
    "accept": lambda cell, host, id_, token: cell.claims.accept(host, id_, token, HOUR_S),
    "confirm": lambda cell, host, id_, token: cell.claims.confirm(host, id_, token),
    "renew": lambda cell, host, id_, token: cell.claims.renew(host, id_, token, HOUR_S),
    "fail-by-host": lambda cell, host, id_, token: cell.claims.fail(host, id_, token, by_host=True),
    "fail": lambda cell, host, id_, token: cell.claims.fail(host, id_, token, by_host=False),
    "release": lambda cell, host, id_, token: cell.claims.release(host, id_, token),
    "release-force": lambda cell, host, id_, token: cell.claims.release(host, id_, token, how=ReleaseMode.FORCE),
    "gone": lambda cell, host, id_, token: cell.claims.gone(host, id_, token, EndReason.RELEASED, {"VCPU": 1}),
    "work-ended": lambda cell, host, id_, token: cell.claims.work_ended(host, id_, token, "no process is left"),
    "stop-failed": lambda cell, host, id_, token: cell.claims.stop_failed(host, id_, token, "target is busy"),
}
SAID = {"renew", "work-ended", "stop-failed"}
"""Verbs that write something and leave the state unchanged."""

# verb, state before: outcome, state after
TABLE = {
    ("accept", "claimed"): ("OK", "starting"),
    ("accept", "starting"): ("ALREADY_DONE", "starting"),
    ("accept", "active"): ("ALREADY_DONE", "active"),
    ("accept", "ending"): ("ENDING", "ending"),
    ("accept", "ended"): ("ENDED", "ended"),
    ("confirm", "claimed"): ("OK", "active"),
    ("confirm", "starting"): ("OK", "active"),
    ("confirm", "active"): ("ALREADY_DONE", "active"),
    ("confirm", "ending"): ("ENDING", "ending"),
    ("confirm", "ended"): ("ENDED", "ended"),
    ("renew", "claimed"): ("OK", "claimed"),
    ("renew", "starting"): ("OK", "starting"),
    ("renew", "active"): ("ALREADY_DONE", "active"),
    ("renew", "ending"): ("ENDING", "ending"),
    ("renew", "ended"): ("ENDED", "ended"),
    ("fail-by-host", "claimed"): ("OK", "ended"),
    ("fail-by-host", "starting"): ("OK", "ended"),
    ("fail-by-host", "active"): ("OK", "ended"),
    ("fail-by-host", "ending"): ("OK", "ended"),
    ("fail-by-host", "ended"): ("ALREADY_DONE", "ended"),
    ("fail", "claimed"): ("OK", "ended"),
    ("fail", "starting"): ("ENDING", "ending"),
    ("fail", "active"): ("ENDING", "ending"),
    ("fail", "ending"): ("ENDING", "ending"),
    ("fail", "ended"): ("ENDED", "ended"),
    ("release", "claimed"): ("OK", "ended"),
    ("release", "starting"): ("ENDING", "ending"),
    ("release", "active"): ("ENDING", "ending"),
    ("release", "ending"): ("ENDING", "ending"),
    ("release", "ended"): ("ALREADY_DONE", "ended"),
    ("release-force", "claimed"): ("OK", "ended"),
    ("release-force", "starting"): ("OK", "ended"),
    ("release-force", "active"): ("OK", "ended"),
    ("release-force", "ending"): ("OK", "ended"),
    ("release-force", "ended"): ("ALREADY_DONE", "ended"),
    ("gone", "claimed"): ("OK", "ended"),
    ("gone", "starting"): ("OK", "ended"),
    ("gone", "active"): ("OK", "ended"),
    ("gone", "ending"): ("OK", "ended"),
    ("gone", "ended"): ("ALREADY_DONE", "ended"),
    ("work-ended", "active"): ("OK", "active"),
    ("work-ended", "ending"): ("ENDING", "ending"),
    ("work-ended", "ended"): ("ENDED", "ended"),
    ("stop-failed", "claimed"): ("STALE", "claimed"),
    ("stop-failed", "starting"): ("STALE", "starting"),
    ("stop-failed", "active"): ("STALE", "active"),
    ("stop-failed", "ending"): ("OK", "ending"),
    ("stop-failed", "ended"): ("ENDED", "ended"),
}


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with one host."""
    await open_host(cell)
    return cell


async def check_shape(cell: CellStore, raw: Any, state: str, token: str) -> None:
    """Check that all keys agree with one claim `a` of 2 VCPU in this state, and that there is nothing else."""
    fields = await fields_of(raw, cell.keys.claim("a"))
    assert (fields["state"], fields["token"]) == (state, token)
    leased, holds = state in ("claimed", "starting"), state != "ended"
    assert (
        (await cell.due.deadlines() == {"a": int(fields["expires_at_ms"])})
        if leased
        else await cell.due.deadlines() == {}
    )
    assert ("expires_at_ms" in fields) == leased
    assert await cell.hosts.claim_ids("h1") == ({"a"} if holds else set())
    assert await claimed(raw, cell) == (2 if holds else 0)
    notifications = [(one.op, one.claim_id, one.token, one.entry_id) for one in await cell.hosts.inbox("h1")]
    op = {"claimed": "claim", "ending": "end"}.get(state)
    assert notifications == ([(op, "a", token, fields["inbox_id"])] if op else [])
    assert await raw.exists(cell.keys.inbox("h1")) == len(notifications)
    assert (await raw.pttl(cell.keys.claim("a")) > 0) == (state == "ended")


@pytest.mark.parametrize(("verb", "state"), TABLE)
async def test_every_word_in_every_state(cell: CellStore, raw: Any, verb: str, state: str) -> None:
    outcome, after = TABLE[verb, state]
    placed = await IN_STATE[state](cell, "a", "h1", VCPU=2)
    before = await everything(raw)
    clock = await cell.tick()
    answer = await VERBS[verb](cell, "h1", "a", placed.token)
    assert answer.outcome == outcome
    await check_shape(cell, raw, after, placed.token)
    changes = [one for one in await cell.feed.read("0-0", 100) if one.seq > clock.seq]
    if after == state and outcome != "OK":
        assert not changes
    if after == state and verb not in SAID:
        assert await everything(raw) == before
    if after in ("ending", "ended") and after != state:
        (entry,) = changes
        version = await raw.hget(cell.keys.host("h1"), "version")
        assert (entry.name, entry.version, entry.more, entry.fields["claim"]) == ("h1", int(version), 0, "a")
        assert entry.fields.get("claimed.VCPU") == ("0" if after == "ended" else None)


@pytest.mark.parametrize(("verb", "state"), TABLE)
async def test_a_word_sent_again_gets_its_first_outcome_and_writes_nothing(
    cell: CellStore, raw: Any, verb: str, state: str
) -> None:
    """A verb that was done is ALREADY_DONE; an ending stays ENDING; a refusal is repeated.

    A lease is renewed again, and so is the time for which a failure is kept.
    """
    placed = await IN_STATE[state](cell)
    first = await VERBS[verb](cell, "h1", "a", placed.token)
    if verb in ("renew", "stop-failed"):
        assert (await VERBS[verb](cell, "h1", "a", placed.token)).outcome is first.outcome
        return
    async with nothing_written(raw):
        again = await VERBS[verb](cell, "h1", "a", placed.token)
    assert again.outcome is (Outcome.ALREADY_DONE if first.outcome is Outcome.OK else first.outcome)


OF_CLAIM = ("release", "release-force")
OF_PLACEMENT = sorted(set(VERBS) - set(OF_CLAIM))


@pytest.mark.parametrize("verb", OF_PLACEMENT)
@pytest.mark.parametrize("state", IN_STATE)
async def test_another_token_or_host_is_stale_and_an_unknown_id_unknown(
    cell: CellStore, raw: Any, verb: str, state: str
) -> None:
    placed = await IN_STATE[state](cell)
    await open_host(cell, "h2")
    async with nothing_written(raw):
        for host, token in (("h1", placed.token + "1"), ("h2", placed.token), ("h1", "1-a.1")):
            assert (await VERBS[verb](cell, host, "a", token)).outcome is Outcome.STALE
        assert (await VERBS[verb](cell, "h1", "nothing", placed.token)).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("verb", OF_CLAIM)
@pytest.mark.parametrize("state", IN_STATE)
async def test_a_release_with_another_token_is_stale_until_the_claim_has_ended(
    cell: CellStore, raw: Any, verb: str, state: str
) -> None:
    """Once the claim has ended, the outcome is ALREADY_DONE, whatever the token.

    The first copy of the call may have ended another placement last.
    """
    await IN_STATE[state](cell)
    outcome = Outcome.ALREADY_DONE if state == "ended" else Outcome.STALE
    async with nothing_written(raw):
        assert (await VERBS[verb](cell, "h1", "a", "1-a.1")).outcome is outcome
        assert (await VERBS[verb](cell, "h1", "nothing", "1-a.1")).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("host", ["", "h2"])
async def test_a_release_finds_the_host_that_its_caller_does_not_know(cell: CellStore, host: str) -> None:
    await open_host(cell, "h2")
    placed = await active(cell)
    assert (await cell.claims.release(host, "a", placed.token)).outcome is Outcome.ENDING
    assert [one.op for one in await cell.hosts.inbox("h1")] == ["end"]


@pytest.mark.parametrize("verb", OF_PLACEMENT)
async def test_only_a_release_may_leave_the_token_out(cell: CellStore, raw: Any, verb: str) -> None:
    await claim_on(cell)
    async with nothing_written(raw):
        assert (await VERBS[verb](cell, "h1", "a", "")).outcome is Outcome.STALE


async def test_a_release_without_a_token_is_for_whichever_placing_it_is(cell: CellStore) -> None:
    await claim_on(cell)
    assert (await cell.claims.release("h1", "a")).outcome is Outcome.OK


@pytest.mark.parametrize("verb", OF_PLACEMENT)
async def test_nothing_is_reported_about_claims_of_a_host_that_has_not_attested(
    cell: CellStore, raw: Any, verb: str
) -> None:
    """Not even UNKNOWN: the store may have lost the id, and the agent would wrongly stop the work."""
    placed = await claim_on(cell)
    await new_epoch(cell)
    async with nothing_written(raw):
        for claim_id in ("a", "nothing"):
            assert (await VERBS[verb](cell, "h1", claim_id, placed.token)).outcome is Outcome.NOT_ATTESTED
        assert (await VERBS[verb](cell, "nowhere", "a", placed.token)).outcome is Outcome.NOT_ATTESTED


@pytest.mark.parametrize("verb", sorted(set(VERBS) - {"accept", "confirm", "renew", "work-ended", "stop-failed"}))
async def test_claims_of_a_host_that_was_written_off_can_be_ended(cell: CellStore, verb: str) -> None:
    placed = await active(cell)
    await new_epoch(cell)
    await cell.hosts.write_off("h1", force=True)
    assert (await VERBS[verb](cell, "h1", "a", placed.token)).outcome in (Outcome.OK, Outcome.ENDING)


async def test_accepting_gives_a_fresh_lease(cell: CellStore, raw: Any) -> None:
    placed = await claim_on(cell)
    answer = await cell.claims.accept("h1", "a", placed.token, 7)
    assert answer.facts == ("starting",)
    assert await cell.due.deadlines() == {"a": answer.now_ms + 7000}


async def test_renewing_tells_the_new_deadline(cell: CellStore) -> None:
    placed = await claim_on(cell)
    answer = await cell.claims.renew("h1", "a", placed.token, 7)
    assert answer.facts == (str(answer.now_ms + 7000),)
    assert await cell.due.deadlines() == {"a": answer.now_ms + 7000}
    await cell.claims.confirm("h1", "a", placed.token)
    assert (await cell.claims.renew("h1", "a", placed.token, 7)).facts == ("",)


async def test_confirming_after_the_deadline_but_before_the_sweep_is_fine(cell: CellStore, raw: Any) -> None:
    placed = await accepted_claim(cell)
    await make_due(raw, cell, "a")
    assert (await cell.claims.confirm("h1", "a", placed.token)).outcome is Outcome.OK
    assert await cell.claims.reconcile(["a"]) == 0


async def test_a_notification_that_has_served_is_deleted_whatever_the_answer(cell: CellStore, raw: Any) -> None:
    """Otherwise agents would read a lost or repeated notification for ever. Only NOT_ATTESTED keeps it."""
    for claim_id, token in (("gone", None), ("stale", "1-a.1"), ("unknown", None)):
        placed = await ended(cell, "gone") if claim_id == "gone" else None
        if claim_id == "stale":
            await accepted_claim(cell, "stale")
        entry = await raw.xadd(cell.keys.inbox("h1"), {"op": "claim"})
        answer = await cell.claims.accept("h1", claim_id, token or (placed.token if placed else "1-a.1"), 60, entry)
        assert answer.outcome in (Outcome.ENDED, Outcome.STALE, Outcome.UNKNOWN)
        assert not await raw.exists(cell.keys.inbox("h1"))
    entry = await raw.xadd(cell.keys.inbox("h1"), {"op": "end"})
    assert (await cell.claims.gone("h1", "unknown", "1-a.1", EndReason.RELEASED, {}, entry)).outcome is Outcome.UNKNOWN
    assert not await raw.exists(cell.keys.inbox("h1"))
    entry = await raw.xadd(cell.keys.inbox("h1"), {"op": "claim"})
    await new_epoch(cell)
    await cell.claims.accept("h1", "gone", "1-a.1", 60, entry)
    assert await raw.exists(cell.keys.inbox("h1"))


async def test_an_inbox_keeps_the_notifications_of_other_claims(cell: CellStore) -> None:
    placed = await claim_on(cell, "a")
    await claim_on(cell, "b")
    await cell.claims.accept("h1", "a", placed.token, 60)
    assert [(one.claim_id, one.number) for one in await cell.hosts.inbox("h1")] == [("b", 2)]


async def test_the_amounts_return_together_with_the_hosts_new_external_usage(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a", VCPU=2)
    seq = (await cell.tick()).seq
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {"VCPU": 3})
    (entry,) = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    numbers = {"claims": "0", "claimed.VCPU": "0", "external.VCPU": "3"}
    assert entry.fields == {"claim": "a", "held.VCPU": "2", "end_reason": "released", **numbers}
    assert await raw.hget(cell.keys.host("h1"), "external.VCPU") == "3"


async def test_why_a_claim_ended_is_why_its_ending_began(cell: CellStore) -> None:
    placed = await active(cell, "a")
    await cell.claims.fail("h1", "a", placed.token, by_host=False)
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    placed = await active(cell, "b")
    await cell.claims.gone("h1", "b", placed.token, EndReason.EXPIRED, {})
    claims = await cell.claims.read("ab")
    assert [claims[one].end_reason for one in "ab"] == [EndReason.FAILED, EndReason.EXPIRED]


async def test_a_failed_claim_stays_failed_for_its_host_and_gone_for_others(cell: CellStore) -> None:
    placed = await claim_on(cell)
    await cell.claims.fail("h1", "a", placed.token, by_host=True)
    assert (await cell.claims.fail("h1", "a", placed.token, by_host=False)).outcome is Outcome.ALREADY_DONE
    assert (await cell.claims.confirm("h1", "a", placed.token)).outcome is Outcome.ENDED
    assert (await cell.claims.read("a"))["a"].end_reason is EndReason.FAILED


async def test_no_word_on_a_claim_touches_what_the_agent_owns(cell: CellStore, raw: Any) -> None:
    scripts = ("claimed.", "claims", "starting", "failures", "version", "inbox")

    def owned(fields: Any) -> dict[str, str]:
        return {name: value for name, value in fields.items() if not name.startswith(scripts)}

    before = owned(await fields_of(raw, cell.keys.host("h1")))
    for verb, state in TABLE:
        if verb == "gone":
            continue
        placed = await IN_STATE[state](cell, f"{verb}-{state}")
        await VERBS[verb](cell, "h1", f"{verb}-{state}", placed.token)
        await cell.claims.release("h1", f"{verb}-{state}", how=ReleaseMode.FORCE)
    assert owned(await fields_of(raw, cell.keys.host("h1"))) == before


async def test_an_undoing_that_arrives_late_leaves_what_another_call_has_returned(cell: CellStore, raw: Any) -> None:
    """The owner has repeated the call with the same id meanwhile, and has its answer."""
    await open_host(cell)
    token = (await claim_on(cell, "a")).token
    await raw.hset(cell.keys.claim("a"), "call_id", "later")
    async with nothing_written(raw):
        assert (await cell.claims.release("h1", "a", token, call_id="first")).outcome is Outcome.STALE
    assert (await cell.claims.release("h1", "a", token, call_id="later")).outcome is Outcome.OK


@pytest.mark.parametrize("state", ["claimed", "starting"])
async def test_a_host_that_was_written_off_takes_nothing_up_before_it_has_attested(
    cell: CellStore, raw: Any, state: str
) -> None:
    """It counts as dead, and its claims are placed elsewhere."""
    token = (await IN_STATE[state](cell, "a")).token
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    async with nothing_written(raw):
        for answer in (
            await cell.claims.accept("h1", "a", token, HOUR_S),
            await cell.claims.confirm("h1", "a", token),
            await cell.claims.renew("h1", "a", token, HOUR_S),
        ):
            assert answer.outcome is Outcome.NOT_ATTESTED
