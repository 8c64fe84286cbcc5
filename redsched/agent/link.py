"""An agent's connection, which runs the calls of `redsched.store.agent_calls`: in the store itself, or over REST."""

from collections.abc import Collection
from typing import Protocol, TypeVar

from redsched.agent.inbox import InboxWatch, InboxWatcher
from redsched.store.agent_calls import AgentCall
from redsched.store.store import Store

R = TypeVar("R")


class CellLink(Protocol):
    """One cell, as an agent sees it. `CellStore` is one, and `redsched.agent.rest.RestCell`."""

    @property
    def name(self) -> str:
        """The name of the cell."""

    async def call(self, call: AgentCall[R], objects: Collection[str] = ()) -> R:
        """Return the reply to a call. `objects`: what counts its claim besides its host; over REST it is not sent."""


class AgentLink(Protocol):
    """The connection of an agent."""

    def cell(self, name: str) -> CellLink:
        """Return a cell."""

    async def watch(self, cell: str, watch: InboxWatch) -> None:
        """Watch the inboxes of hosts of a cell until cancelled."""


class StoreLink:
    """The connection of an agent that has access to the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.cell = store.cell

    async def watch(self, cell: str, watch: InboxWatch) -> None:
        """Poll the inboxes of few hosts, or the feed for many."""
        await InboxWatcher(self.cell(cell), watch).run()
