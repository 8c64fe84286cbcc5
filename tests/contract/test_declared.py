"""The operations on declared objects do the same on a scheduler and over REST."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redsched.errors import ClaimState, InvalidRequest, NotFound, PreconditionFailed, RedschedError
from redsched.model import Aggregate, GroupPolicy, Inventory, Quota, ServerGroup, SharedPool
from redsched.model.conditions import ABSENT, EXISTS
from redsched.operations.declared import Aggregates, Quotas, ServerGroups, SharedPools
from tests.contract.parts import Play, contract


@dataclass(frozen=True)
class Kind:
    """Objects of a kind: two of one name, another, what is not allowed, and a claim that uses the first."""

    first: Any
    changed: Any
    other: Any
    refused: Mapping[type[RedschedError], Any]
    uses: Mapping[str, Any]
    is_kept_in_use: bool = True
    """Whether it cannot be deleted while it is in use, unless forced."""


KINDS: Mapping[str, Kind] = {
    "aggregates": Kind(
        Aggregate("a", {"ssd": "true"}, frozenset({"h1", "h2"})),
        Aggregate("a", {"ssd": "false"}, frozenset({"h1"})),
        Aggregate("b"),
        {NotFound: Aggregate("c", {}, frozenset({"h9"}))},
        {},
    ),
    "server_groups": Kind(
        ServerGroup("a", GroupPolicy.ANTI_AFFINITY),
        ServerGroup("a", GroupPolicy.ANTI_AFFINITY, max_per_host=2),
        ServerGroup("b", GroupPolicy.SOFT_AFFINITY, by="zone"),
        {},
        {"server_group": "a"},
    ),
    "shared_pools": Kind(
        SharedPool("a", {"CUSTOM_SEAT": Inventory(10)}),
        SharedPool("a", {"CUSTOM_SEAT": Inventory(20, 2)}, frozenset({"CUSTOM_LICENCE"})),
        SharedPool("b", {"CUSTOM_TAPE": Inventory(1)}),
        {},
        {"amounts": {"VCPU": 1, "CUSTOM_SEAT": 1}},
    ),
    "quotas": Kind(
        Quota("a", {"VCPU": 10}),
        Quota("a", {"VCPU": 20, "claims": 5}),
        Quota("b", {"claims": 1}),
        {},
        {"project": "a"},
        False,
    ),
}


def kind_of(play: Play) -> Kind:
    return KINDS[play.operation.name.partition(".")[0]]


def group_of(play: Play) -> Any:
    return getattr(play.fleet, play.operation.name.partition(".")[0])


@contract(Aggregates.list, ServerGroups.list, SharedPools.list, Quotas.list)
async def test_listing(play: Play) -> None:
    kind, group = kind_of(play), group_of(play)
    await play.does()
    await group.put(kind.other)
    await group.put(kind.first)
    await play.placed(**kind.uses)
    page = await play.does(limit=1)
    await play.does(after=page.next)
    await play.does(after="zz")
    await play.refuses(InvalidRequest, limit=0)


@contract(
    *(Aggregates.get, ServerGroups.get, SharedPools.get, Quotas.get),
    *(Aggregates.tag, ServerGroups.tag, SharedPools.tag, Quotas.tag),
)
async def test_reading(play: Play) -> None:
    kind, group = kind_of(play), group_of(play)
    await group.put(kind.first)
    await play.placed(**kind.uses)
    await play.does("a")
    await group.put(kind.changed)
    await play.does("a")
    await play.refuses(NotFound, "nobody")
    await play.refuses(InvalidRequest, "a/b")


@contract(Aggregates.put, ServerGroups.put, SharedPools.put, Quotas.put)
async def test_declaring(play: Play) -> None:
    kind, group = kind_of(play), group_of(play)
    await play.refuses(PreconditionFailed, kind.first, if_match=EXISTS)
    await play.does(kind.first, if_match=ABSENT)
    tag = await group.tag("a")
    await play.does(kind.first)
    await play.does(kind.changed, if_match=["other", tag])
    await play.refuses(PreconditionFailed, kind.first, if_match=tag)
    await play.refuses(PreconditionFailed, kind.first, if_match=ABSENT)
    await play.does(kind.other)
    for error, one in kind.refused.items():
        await play.refuses(error, one)


@contract(ServerGroups.put)
async def test_changing_the_policy_of_a_group_with_members(play: Play) -> None:
    await play.fleet.server_groups.put(ServerGroup("a", GroupPolicy.AFFINITY))
    await play.placed(server_group="a")
    await play.refuses(ClaimState, ServerGroup("a", GroupPolicy.ANTI_AFFINITY))


@contract(SharedPools.put)
async def test_the_cell_of_a_pool(play: Play) -> None:
    pool = SharedPool("a", {"CUSTOM_SEAT": Inventory(10)})
    await play.does(pool, cell="c1")
    await play.refuses(NotFound, pool, cell="elsewhere")


@contract(Aggregates.delete, ServerGroups.delete, SharedPools.delete, Quotas.delete)
async def test_deleting(play: Play) -> None:
    kind, group = kind_of(play), group_of(play)
    await group.put(kind.first)
    await play.placed(**kind.uses)
    if kind.is_kept_in_use:
        await play.refuses(ClaimState, "a")
    now = {"force": True} if kind.is_kept_in_use else {}
    await play.refuses(PreconditionFailed, "a", if_match="other", **now)
    await play.does("a", if_match=await group.tag("a"), **now)
    await play.refuses(NotFound, "a")
    await play.refuses(InvalidRequest, "a/b")
