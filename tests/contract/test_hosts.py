"""The operations on hosts do the same on a scheduler and over REST."""

from redsched.errors import ClaimState, InvalidRequest, NotFound, PreconditionFailed
from redsched.model import Aggregate, AtDeadline
from redsched.model.conditions import EXISTS
from redsched.operations.hosts import Hosts
from tests.contract.parts import Play, contract


@contract(Hosts.list)
async def test_listing(play: Play) -> None:
    await play.fleet.aggregates.put(Aggregate("a", {}, frozenset({"h2"})))
    await play.placed()
    page = await play.does(limit=1)
    await play.does(after=page.next)
    for name, value in {
        "zone": ["az1", "az3"],
        "status": "enabled",
        "trait": "HW_CPU_X86_AVX2",
        "aggregate": "a",
        "label": "rack=r2",
        "fits": {"VCPU": 6, "MEMORY_MB": 1},
    }.items():
        await play.does(**{name: value})
    await play.does(status=["disabled", "lost", "down"])
    for bad in ({"limit": 0}, {"status": "gone"}, {"label": "rack"}, {"fits": {"vcpu": 1}}):
        await play.refuses(InvalidRequest, **bad)


@contract(Hosts.get, Hosts.tag, Hosts.drain_progress)
async def test_reading(play: Play) -> None:
    await play.placed()
    await play.does("h1")
    await play.fleet.hosts.disable("h1", reason="new firmware")
    await play.does("h1", cell="c1")
    await play.fleet.claims.confirm("mine", (await play.fleet.claims.get("mine")).token)
    await play.fleet.hosts.disable("h2")
    await play.fleet.hosts.drain("h1", move=True)
    await play.does("h1")
    await play.refuses(NotFound, "h9")
    await play.refuses(NotFound, "h1", cell="elsewhere")
    await play.refuses(InvalidRequest, "a/b")


@contract(Hosts.enable, Hosts.disable, Hosts.drain, Hosts.write_off, Hosts.remove)
async def test_words(play: Play) -> None:
    """What operators do: with conditions, on a host that is none, and in a cell that is none."""
    if play.operation is Hosts.enable:
        await play.fleet.hosts.disable("h2")
    tag = await play.fleet.hosts.tag("h2")
    now = {"force": True} if play.operation in (Hosts.write_off, Hosts.remove) else {}
    await play.refuses(NotFound, "h9", **now)
    await play.refuses(NotFound, "h2", cell="elsewhere", **now)
    await play.refuses(InvalidRequest, "a/b", **now)
    await play.refuses(PreconditionFailed, "h2", if_match="other", **now)
    await play.refuses(NotFound, "h9", if_match=EXISTS, **now)
    await play.does("h2", cell="c1", if_match=tag, **now)
    await play.does("h1", **now)
    if play.operation is not Hosts.remove:
        await play.does("h1", if_match=EXISTS, **now)


@contract(Hosts.enable)
async def test_enabling(play: Play) -> None:
    await play.fleet.hosts.disable("h1", "new firmware")
    await play.does("h1")
    await play.fleet.hosts.disable("h9", ahead=True)
    await play.does("h9")
    await play.refuses(NotFound, "h9")


@contract(Hosts.disable)
async def test_disabling(play: Play) -> None:
    await play.does("h1", "new firmware")
    await play.does("h9", ahead=True)
    for reason in ("two\nlines", "x" * 3000):
        await play.refuses(InvalidRequest, "h1", reason)


@contract(Hosts.drain)
async def test_draining(play: Play) -> None:
    await play.placed()
    await play.does("h1", move=True, deadline_s=60, then=AtDeadline.STOP, reason="new GPUs")
    for bad in ({"deadline_s": -1}, {"deadline_s": 60}, {"then": AtDeadline.STOP}, {"reason": "two\nlines"}):
        await play.refuses(InvalidRequest, "h2", **bad)


@contract(Hosts.write_off)
async def test_writing_off(play: Play) -> None:
    await play.placed()
    await play.refuses(ClaimState, "h1")
    await play.refuses(InvalidRequest, "h1", force=True, reason="two\nlines")
    await play.does("h1", evacuate=True, force=True, reason="its mainboard is broken")


@contract(Hosts.remove)
async def test_removing(play: Play) -> None:
    await play.placed()
    await play.refuses(ClaimState, "h1")
    await play.refuses(ClaimState, "h2")
    await play.does("h1", force=True)
    await play.refuses(NotFound, "h1", force=True)
