"""Tags: scripts compute them in the step that writes, in the same way as `redsched.store.codec.tags`."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from redsched.model import Aggregate, GroupPolicy, HostStatus, Inventory, Quota, ServerGroup, SharedPool
from redsched.model.conditions import ABSENT, EXISTS, IfMatch
from redsched.store.cell import CellStore
from redsched.store.codec.fields import aggregate_fields
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult
from redsched.store.codec.tags import definition_tag, operator_tag
from tests.support.builders.cells import declared_keys_cell, nothing_written, open_host

SEATS = {"CUSTOM_SEAT": Inventory(9, reserved=1), "CUSTOM_B": Inventory(3)}
Write = Callable[[CellStore, IfMatch], Awaitable[ScriptResult]]

PUTS: dict[Kind, tuple[Write, Write]] = {
    Kind.AGGREGATE: (
        lambda cell, tags: cell.declared.put_aggregate(
            Aggregate("a", {f"key{n}": "x" * n for n in range(1, 20)}, frozenset(("h1",))), tags
        ),
        lambda cell, tags: cell.declared.put_aggregate(Aggregate("a", {"key": "other"}), tags),
    ),
    Kind.SERVER_GROUP: (
        lambda cell, tags: cell.declared.put_group(
            ServerGroup("a", GroupPolicy.AFFINITY, count_by=("label:r", "label:q")), tags
        ),
        lambda cell, tags: cell.declared.put_group(ServerGroup("a", GroupPolicy.ANTI_AFFINITY), tags),
    ),
    Kind.POOL: (
        lambda cell, tags: cell.declared.put_pool(
            SharedPool("a", SEATS, frozenset(("CUSTOM_X",)), frozenset(("g",))), tags
        ),
        lambda cell, tags: cell.declared.put_pool(SharedPool("a", {"CUSTOM_SEAT": Inventory(2)}), tags),
    ),
    Kind.QUOTA: (
        lambda cell, tags: cell.declared.put_quota(Quota("a", {"VCPU": 4, "claims": 2}), ("c1", "c2"), tags),
        lambda cell, tags: cell.declared.put_quota(Quota("a", {"VCPU": 5}), (), tags),
    ),
}
DELETES: dict[Kind, Write] = {
    Kind.AGGREGATE: lambda cell, tags: cell.declared.delete_aggregate("a", True, tags),
    Kind.SERVER_GROUP: lambda cell, tags: cell.declared.delete_group("a", True, tags),
    Kind.POOL: lambda cell, tags: cell.declared.delete_pool("a", True, tags),
    Kind.QUOTA: lambda cell, tags: cell.declared.delete_quota("a", tags),
}
ON_A_HOST: dict[str, Write] = {
    "enable": lambda cell, tags: cell.hosts.set_status("h1", HostStatus.ENABLED, if_match=tags),
    "drain": lambda cell, tags: cell.hosts.set_status("h1", HostStatus.DRAINING, True, 600, if_match=tags),
    "write off": lambda cell, tags: cell.hosts.write_off("h1", True, True, tags),
    "forget": lambda cell, tags: cell.hosts.forget("h1", True, tags),
}


async def tag_of(cell: CellStore, kind: Kind) -> str:
    return str(definition_tag((await cell.declared.read(kind, ["a"]))["a"]))


@pytest.mark.parametrize("kind", PUTS)
async def test_a_thing_is_written_only_under_its_tag(cell: CellStore, raw: Any, kind: Kind) -> None:
    await open_host(cell, "h1")
    first, second = PUTS[kind]
    async with nothing_written(raw):
        answer = await first(cell, EXISTS)
        assert (answer.outcome, answer.facts) == (Outcome.CHANGED, ()), "there is none"
    assert (await first(cell, ABSENT)).outcome is Outcome.OK
    tag = await tag_of(cell, kind)
    for wrong in (("other",), ("*", "-", tag[:-1]), (), ABSENT):
        async with nothing_written(raw):
            for write in (second, DELETES[kind]):
                answer = await write(cell, wrong)
                assert (answer.outcome, answer.facts) == (Outcome.CHANGED, (tag,)), "the script computes the same tag"
    for wrong in (("other",), ABSENT):
        assert (await first(cell, wrong)).outcome is Outcome.ALREADY_DONE, "it is so already"
    assert (await second(cell, ("other", tag))).outcome is Outcome.OK
    assert await tag_of(cell, kind) != tag
    assert (await first(cell, EXISTS)).outcome is Outcome.OK
    assert await tag_of(cell, kind) == tag, "the same declaration has the same tag"
    assert (await DELETES[kind](cell, (tag,))).outcome is Outcome.OK


@pytest.mark.parametrize("action", ON_A_HOST)
async def test_a_host_is_written_only_under_its_tag(cell: CellStore, raw: Any, action: str) -> None:
    await open_host(cell, "h1")
    await cell.hosts.set_status("h1", HostStatus.DRAINING, True, 60)
    (hashes,) = await cell.hosts.read(["h1"])
    tag = operator_tag(hashes.fields)
    async with nothing_written(raw):
        answer = await ON_A_HOST[action](cell, ("other",))
        assert (answer.outcome, answer.facts) == (Outcome.CHANGED, (tag,)), "the script computes the same tag"
    assert (await ON_A_HOST[action](cell, (tag,))).outcome is Outcome.OK


async def test_a_host_that_is_written_off_has_another_tag(cell: CellStore) -> None:
    await open_host(cell, "h1")
    await cell.hosts.set_status("h1", HostStatus.DISABLED)
    before = operator_tag((await cell.hosts.read(["h1"]))[0].fields)
    await cell.hosts.write_off("h1", force=True)
    answer = await cell.hosts.set_status("h1", HostStatus.ENABLED, if_match=(before,))
    (hashes,) = await cell.hosts.read(["h1"])
    assert (answer.outcome, answer.facts) == (Outcome.CHANGED, (operator_tag(hashes.fields),))


async def test_hosts_of_an_older_declaration_come_too_late(
    cell: CellStore, clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between an aggregate's declaration and its hosts another operator declares it: that declaration stays whole."""
    for host in ("h1", "h2"):
        await open_host(cell, host)
    async with declared_keys_cell(clean_store) as other:
        set_members = cell.declared._set_members

        async def after_the_other(name: str, hosts: frozenset[str], hosts_digest: str) -> ScriptResult:
            await other.declared.put_aggregate(Aggregate("a", {}, frozenset(("h2",))))
            return await set_members(name, hosts, hosts_digest)

        monkeypatch.setattr(cell.declared, "_set_members", after_the_other)
        assert (await cell.declared.put_aggregate(Aggregate("a", {}, frozenset(("h1",))))).outcome is Outcome.OK
        assert await cell.declared.members("a") == ["h2"]
        tag = await tag_of(cell, Kind.AGGREGATE)
        answer = await cell.declared.put_aggregate(Aggregate("a", {}, frozenset(("h1",))), (tag,))
        assert (answer.outcome, answer.facts) == (Outcome.CHANGED, (tag,)), "it is told, and can try again"
        assert await cell.declared.members("a") == ["h2"]


async def test_what_is_based_on_some_of_the_hosts_is_refused_once_all_are_written(
    cell: CellStore, clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise who adds a host to those that were read would remove those that were not there yet."""
    for host in ("h1", "h2", "h3"):
        await open_host(cell, host)
    await cell.declared.put_aggregate(Aggregate("a", {}, frozenset(("h3",))))
    async with declared_keys_cell(clean_store) as other:
        set_members, seen = cell.declared._set_members, list[str]()

        async def after_a_reader(name: str, hosts: frozenset[str], hosts_digest: str) -> ScriptResult:
            seen.append(await tag_of(other, Kind.AGGREGATE))
            assert await other.declared.members("a") == ["h3"]
            return await set_members(name, hosts, hosts_digest)

        monkeypatch.setattr(cell.declared, "_set_members", after_a_reader)
        assert (await cell.declared.put_aggregate(Aggregate("a", {}, frozenset(("h1", "h3"))))).outcome is Outcome.OK
        answer = await other.declared.put_aggregate(Aggregate("a", {}, frozenset(("h2", "h3"))), seen)
        assert (answer.outcome, answer.facts) == (Outcome.CHANGED, (await tag_of(cell, Kind.AGGREGATE),))
        assert await cell.declared.members("a") == ["h1", "h3"]


async def test_a_declaration_that_was_interrupted_is_completed_by_a_repeat(cell: CellStore) -> None:
    await open_host(cell, "h1")
    whole = Aggregate("a", {}, frozenset(("h1",)))
    fields = aggregate_fields(whole)
    await cell.declared._declare(Kind.AGGREGATE, "a", fields, None)
    assert await tag_of(cell, Kind.AGGREGATE) != definition_tag(fields)
    assert (await cell.declared.put_aggregate(whole, ("stale",))).outcome is Outcome.OK
    assert await tag_of(cell, Kind.AGGREGATE) == definition_tag(fields)
    assert await cell.declared.members("a") == ["h1"]
