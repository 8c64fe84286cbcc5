"""local: a host reports work that nobody has claimed: what that changes, and which ids and copies are refused."""

from typing import Any

import pytest

from redsched.model import EndReason, HostStatus, Inventory, SharedPool
from redsched.model.limits import MAX_HOST_CLAIMS
from redsched.model.validation import MAX_AMOUNT
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode
from tests.support.builders.cells import (
    IN_STATE,
    claim_on,
    claimed,
    fields_of,
    new_epoch,
    nothing_written,
    open_host,
    report_of,
)

SEATS = "pool:licences/CUSTOM_SEAT"


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with one host of 8 VCPU."""
    await open_host(cell)
    return cell


async def test_local_work_is_an_active_claim_at_once(cell: CellStore, raw: Any) -> None:
    answer = await cell.claims.report_local("h1", "console", {"VCPU": 2}, "ops", "alice")
    assert answer.outcome is Outcome.OK
    claim = (await cell.claims.read(["console"]))["console"]
    assert (claim.host, claim.state, claim.token) == ("h1", "active", answer.facts[0])
    assert (claim.slots, claim.project, claim.consumer) == ({"VCPU": 2}, "ops", "alice")
    assert await claimed(raw, cell) == 2
    assert await cell.hosts.claim_ids("h1") == {"console"}
    assert (dict(await cell.due.deadlines()), await cell.hosts.inbox("h1")) == ({}, [])
    fields = await fields_of(raw, cell.keys.host("h1"))
    assert (fields["claims"], fields.get("starting", "0")) == ("1", "0")
    (change,) = [one for one in await cell.feed.read("0-0", 100) if one.op == "local"]
    assert (change.fields["claimed.VCPU"], change.fields["claims"], change.version) == (
        "2",
        "1",
        int(fields["version"]),
    )


async def test_it_is_accepted_even_where_the_host_is_over_then(cell: CellStore, raw: Any) -> None:
    """If it were refused, the work would still run, but uncounted."""
    await claim_on(cell, VCPU=8)
    await cell.hosts.set_status("h1", HostStatus.DISABLED)
    assert (await cell.claims.report_local("h1", "console", {"VCPU": 2, "DISK_GB": 5})).outcome is Outcome.OK
    fields = await fields_of(raw, cell.keys.host("h1"))
    assert (fields["claimed.VCPU"], fields["over.VCPU"], fields["over.DISK_GB"]) == ("10", "1", "1")


async def test_repeated_it_is_the_same_and_writes_nothing(cell: CellStore, raw: Any) -> None:
    first = await cell.claims.report_local("h1", "console", {"VCPU": 2}, "ops")
    async with nothing_written(raw):
        for token in ("", first.facts[0]):
            again = await cell.claims.report_local("h1", "console", {"VCPU": 2}, "ops", token=token)
            assert (again.outcome, again.facts) == (Outcome.ALREADY_DONE, first.facts)


async def test_other_amounts_are_a_new_placing_and_a_late_copy_of_the_old_is_stale(cell: CellStore, raw: Any) -> None:
    first = (await cell.claims.report_local("h1", "console", {"VCPU": 2})).facts[0]
    second = await cell.claims.report_local("h1", "console", {"VCPU": 5}, token=first)
    assert second.outcome is Outcome.OK
    assert await claimed(raw, cell) == 5
    assert (await fields_of(raw, cell.keys.host("h1")))["claims"] == "1"
    async with nothing_written(raw):
        for token in ("", first):
            late = await cell.claims.report_local("h1", "console", {"VCPU": 2}, token=token)
            assert (late.outcome, late.facts) == (Outcome.STALE, second.facts[:1])


async def test_what_has_ended_comes_back_only_by_the_token_that_it_ended_with(cell: CellStore, raw: Any) -> None:
    """A late copy of the first report must not restore what the host has reported as ended."""
    token = (await cell.claims.report_local("h1", "console", {"VCPU": 2})).facts[0]
    assert (await cell.claims.gone("h1", "console", token, EndReason.RELEASED, {})).outcome is Outcome.OK
    async with nothing_written(raw):
        late = await cell.claims.report_local("h1", "console", {"VCPU": 2})
        assert (late.outcome, late.facts) == (Outcome.STALE, (token,))
    again = await cell.claims.report_local("h1", "console", {"VCPU": 2}, token=token)
    assert again.outcome is Outcome.OK
    assert await raw.pttl(cell.keys.claim("console")) == -1, "it does not end with its tombstone's time"
    assert await claimed(raw, cell) == 2


@pytest.mark.parametrize("state", IN_STATE)
async def test_the_id_of_another_claim_is_refused(cell: CellStore, raw: Any, state: str) -> None:
    await IN_STATE[state](cell, "a", "h1", VCPU=2)
    async with nothing_written(raw):
        assert (await cell.claims.report_local("h1", "a", {"VCPU": 2})).outcome is Outcome.CONFLICT


async def test_on_another_host_it_waits_until_it_has_ended_on_the_first(cell: CellStore, raw: Any) -> None:
    await open_host(cell, "h2")
    token = (await cell.claims.report_local("h1", "vm", {"VCPU": 2})).facts[0]
    async with nothing_written(raw):
        assert (await cell.claims.report_local("h2", "vm", {"VCPU": 2}, token=token)).outcome is Outcome.CONFLICT
    await cell.claims.gone("h1", "vm", token, EndReason.RELEASED, {})
    assert (await cell.claims.report_local("h2", "vm", {"VCPU": 2}, token=token)).outcome is Outcome.OK
    assert (await claimed(raw, cell), await claimed(raw, cell, "h2")) == (0, 2)


async def test_what_its_host_was_asked_to_stop_is_not_claimed_again(cell: CellStore, raw: Any) -> None:
    token = (await cell.claims.report_local("h1", "console", {"VCPU": 2})).facts[0]
    assert (await cell.claims.release("h1", "console")).outcome is Outcome.ENDING
    async with nothing_written(raw):
        assert (await cell.claims.report_local("h1", "console", {"VCPU": 2}, token=token)).outcome is Outcome.ENDING


async def test_a_host_that_has_not_attested_is_asked_to(cell: CellStore, raw: Any) -> None:
    await new_epoch(cell)
    async with nothing_written(raw):
        assert (await cell.claims.report_local("h1", "console", {"VCPU": 2})).outcome is Outcome.NOT_ATTESTED
        assert (await cell.claims.report_local("h9", "console", {"VCPU": 2})).outcome is Outcome.NOT_ATTESTED


async def test_what_a_new_journal_was_asked_to_accept_is_local_again(cell: CellStore, raw: Any) -> None:
    """An attestation without it makes it a claim to be accepted; then the host reports what it is."""
    token = (await cell.claims.report_local("h1", "console", {"VCPU": 2})).facts[0]
    await cell.hosts.attest("h1", await new_epoch(cell))
    assert (await fields_of(raw, cell.keys.host("h1")))["starting"] == "1"
    assert (await cell.claims.report_local("h1", "console", {"VCPU": 2}, token=token)).outcome is Outcome.OK
    fields = await fields_of(raw, cell.keys.host("h1"))
    assert (fields["starting"], fields["claims"], fields["claimed.VCPU"]) == ("0", "1", "2")
    assert (dict(await cell.due.deadlines()), await cell.hosts.inbox("h1")) == ({}, [])


async def test_it_counts_in_shared_pools_too(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_pool(SharedPool("licences", {"CUSTOM_SEAT": Inventory(5)}))
    token = (await cell.claims.report_local("h1", "console", {SEATS: 7})).facts[0]
    pool = await fields_of(raw, cell.keys.pool("licences"))
    assert (pool["claimed.CUSTOM_SEAT"], pool["over.CUSTOM_SEAT"]) == ("7", "1")
    await cell.claims.gone("h1", "console", token, EndReason.RELEASED, {})
    assert (await fields_of(raw, cell.keys.pool("licences")))["claimed.CUSTOM_SEAT"] == "0"


async def test_it_may_be_the_last_that_counts_in_a_pool_that_nobody_declares_any_more(
    cell: CellStore, raw: Any
) -> None:
    """The pool is deleted with it, and the script does not touch its key again."""
    await cell.declared.put_pool(SharedPool("licences", {"CUSTOM_SEAT": Inventory(5)}))
    token = (await cell.claims.report_local("h1", "console", {"VCPU": 1, SEATS: 1})).facts[0]
    await cell.declared.delete_pool("licences", True)
    assert await raw.exists(cell.keys.pool("licences"))
    assert (await cell.claims.report_local("h1", "console", {"VCPU": 1}, token=token)).outcome is Outcome.OK
    assert not await raw.exists(cell.keys.pool("licences"))


async def test_a_resize_by_its_owner_gives_way_to_what_its_host_says(cell: CellStore, raw: Any) -> None:
    token = (await cell.claims.report_local("h1", "console", {"VCPU": 2})).facts[0]
    token = (await cell.claims.resize("h1", "console", token, {"VCPU": 6})).facts[0]
    assert (await cell.claims.report_local("h1", "console", {"VCPU": 3}, token=token)).outcome is Outcome.OK
    claim = (await cell.claims.read(["console"]))["console"]
    assert (claim.slots, claim.resizing_to) == ({"VCPU": 3}, {})
    assert await claimed(raw, cell) == 3
    assert await cell.hosts.inbox("h1") == []
    await cell.hosts.report(report_of())


async def test_sums_above_the_largest_amount_are_refused(cell: CellStore, raw: Any) -> None:
    """They would be cut to it: once one of the claims has ended, the sum would no longer be that of the others."""
    assert (await cell.claims.report_local("h1", "one", {"VCPU": MAX_AMOUNT})).outcome is Outcome.OK
    async with nothing_written(raw):
        refused = await cell.claims.report_local("h1", "two", {"VCPU": MAX_AMOUNT})
        assert (refused.outcome, refused.facts) == (Outcome.FULL, ("claimed.VCPU",))
        assert (await cell.claims.report_local("h1", "two", {"VCPU": 1})).outcome is Outcome.FULL
    assert (await cell.claims.release("h1", "one", how=ReleaseMode.FORCE)).outcome is Outcome.OK
    assert await claimed(raw, cell) == 0
    assert (await cell.claims.report_local("h1", "two", {"VCPU": MAX_AMOUNT - 1})).outcome is Outcome.OK


async def test_sums_of_quotas_and_shared_pools_stay_below_the_largest_amount_too(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_pool(SharedPool("licences", {"CUSTOM_SEAT": Inventory(5)}))
    assert (await cell.claims.report_local("h1", "seats", {SEATS: MAX_AMOUNT})).outcome is Outcome.OK
    assert (await cell.claims.report_local("h1", "vcpu", {"VCPU": MAX_AMOUNT}, "web")).outcome is Outcome.OK
    await open_host(cell, "h2")
    async with nothing_written(raw):
        assert (await cell.claims.report_local("h2", "b", {SEATS: 1})).facts == ("claimed.CUSTOM_SEAT",)
        assert (await cell.claims.report_local("h2", "b", {"VCPU": 1}, "web")).facts == ("used.VCPU",)


async def test_a_host_reports_no_more_local_work_than_it_may_have_claims(cell: CellStore, raw: Any) -> None:
    """One script reads all claims of a host. Work that is counted already may still change its amounts."""
    token = (await cell.claims.report_local("h1", "one", {"VCPU": 1})).facts[0]
    await raw.hset(cell.keys.host("h1"), "claims", MAX_HOST_CLAIMS)
    assert (await cell.claims.report_local("h1", "two", {"VCPU": 1})).facts == ("claims",)
    assert (await cell.claims.report_local("h1", "one", {"VCPU": 2}, token=token)).outcome is Outcome.OK
