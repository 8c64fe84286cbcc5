"""The log of events reads the same on a scheduler and over REST."""

from redsched.errors import InvalidRequest
from redsched.model.filters import EventFilter
from redsched.operations.events import Events
from tests.contract.parts import Play, contract
from tests.support.waiting import wait_until


async def happen(play: Play) -> None:
    """Have a claim made, confirmed and ended, and wait until the log has its end."""
    one = await play.placed()
    await play.fleet.claims.confirm("mine", one.token or "")
    await play.fleet.claims.release("mine", force=True)

    async def is_recorded() -> bool:
        return bool(await play.fleet.events.newest(wanted=EventFilter(claim="mine", kind="released")))

    await wait_until(is_recorded)


@contract(Events.list, Events.newest)
async def test_of_a_fleet(play: Play) -> None:
    await happen(play)
    await play.does(wanted=EventFilter(claim="mine"))
    await play.does(wanted=EventFilter(kind=["claimed", "released"], project="web"))
    await play.does(wanted=EventFilter(host="h1", since_ms=1, before_ms=2**50))
    await play.does(1, wanted=EventFilter(claim="mine"))
    await play.refuses(InvalidRequest, 0)


@contract(Events.list)
async def test_pages(play: Play) -> None:
    await happen(play)
    page = await play.does(limit=2)
    await play.does(after=page.next)
    await play.refuses(InvalidRequest, after="no cursor")


@contract(Events.of_claim)
async def test_of_a_claim(play: Play) -> None:
    await happen(play)
    await play.does("mine")
    await play.does("mine", kind="claimed")
    await play.does("mine", newest=True, limit=1)
    await play.does("nobody")
    await play.refuses(InvalidRequest, "mine", kind="nothing")
    await play.refuses(InvalidRequest, "a/b")
    await play.refuses(InvalidRequest, "mine", limit=0)
