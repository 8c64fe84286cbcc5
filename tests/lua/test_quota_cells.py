"""A cell's part in quotas: they are declared like all else, and claims are recalled, found and marked for a count."""

from dataclasses import replace
from typing import Any

from redsched.model import Quota
from redsched.store import CellStore, Kind, Marked, Member, Outcome
from tests.support.cells import active, call_of, claim_on, ended, member, new_epoch, nothing_written, open_host

QUOTA = Quota("project", {"VCPU": 10, "claims": 3})


async def test_a_quota_is_declared_and_taken_back(cell: CellStore, raw: Any) -> None:
    assert (await cell.put_quota(QUOTA)).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await cell.put_quota(QUOTA)).outcome is Outcome.SAME
    (fields,) = (await cell.read_things(Kind.QUOTA, ["project"])).values()
    assert {"limit.VCPU": "10", "limit.claims": "3"}.items() <= fields.items()
    await cell.put_quota(Quota("project", {"claims": 5}))
    (fields,) = (await cell.read_things(Kind.QUOTA, ["project"])).values()
    assert fields.keys() == {"version", "limit.claims"}
    assert await cell.declared_names(Kind.QUOTA) == ["project"]
    assert (await cell.delete_quota("project")).outcome is Outcome.OK
    assert (await cell.delete_quota("project")).outcome is Outcome.UNKNOWN
    assert await cell.declared_names(Kind.QUOTA) == []


async def behind(cell: CellStore, said: Any) -> Outcome:
    """What a claim is answered that was decided just before something was said."""
    clock = await cell.tick()
    await said
    return (await cell.claim(call_of(clock, member("late", "h1")))).outcome


async def test_no_claim_slips_by_at_the_moment_of_declaring(cell: CellStore) -> None:
    """What was decided before a quota was declared, recalled or taken back is decided again."""
    await open_host(cell)
    assert await behind(cell, cell.put_quota(QUOTA)) is Outcome.BEHIND
    assert await behind(cell, cell.recall("project")) is Outcome.BEHIND
    assert await behind(cell, cell.delete_quota("project")) is Outcome.BEHIND


async def test_recalling_says_what_stands_against_a_count(cell: CellStore, raw: Any) -> None:
    async with nothing_written(raw):
        assert (await cell.recall("project")).outcome is Outcome.UNKNOWN
    await cell.put_quota(QUOTA)
    await open_host(cell)
    await new_epoch(cell)
    assert (await cell.recall("project")).outcome is Outcome.SETTLING


async def test_marking_finds_what_the_project_holds(cell: CellStore, raw: Any) -> None:
    """Claims that have not ended, with all that they hold; of other projects and of ended ones nothing is written."""
    await open_host(cell, VCPU=8, MEMORY_MB=1024)
    await claim_on(cell, "a", VCPU=1, MEMORY_MB=512)
    await active(cell, "b", VCPU=2)
    await ended(cell, "c")
    other = replace(call_of(await cell.tick(), Member("d", member("d", "h1").candidates)), project="other")
    assert (await cell.claim(other)).outcome is Outcome.OK
    epoch, found = await cell.mark("project", ["a", "b", "c", "d", "e"])
    assert epoch == (await cell.tick()).epoch
    assert found == [Marked("a", "", {"VCPU": 1, "MEMORY_MB": 512}), Marked("b", "", {"VCPU": 2})]
    assert await raw.exists(cell.keys.claim("e")) == 0
    assert [await raw.hget(cell.keys.claim(one), "quota") for one in "abcd"] == ["1", "1", None, None]
