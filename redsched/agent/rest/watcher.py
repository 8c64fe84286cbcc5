"""Wait for notifications over REST: one request for up to 200 hosts, which the API answers when there is one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from redsched import aio
from redsched.agent.inbox import InboxWatch
from redsched.model.limits import MAX_CALL_HOSTS
from redsched.store.agent_calls import InboxesCall
from redsched.store.codec.replies import Inboxes

WAIT_S = 20.0
"""How long the API waits before it replies that there is nothing: shorter than proxies keep a silent connection."""

Wait = Callable[[InboxesCall], Awaitable[Inboxes]]
"""Return the notifications that the call waits for."""


async def watch_inboxes(wait: Wait, watch: InboxWatch) -> None:
    """Watch the inboxes of an agent's hosts in one cell until cancelled."""
    names = list(watch.hosts)
    starts = range(0, len(names), MAX_CALL_HOSTS)
    await aio.gather(_watch_some(wait, watch, names[first : first + MAX_CALL_HOSTS]) for first in starts)


async def _watch_some(wait: Wait, watch: InboxWatch, names: Sequence[str]) -> None:
    after, epoch = dict.fromkeys(names, ""), ""
    while after := {name: entry_id for name, entry_id in after.items() if name in watch.hosts}:
        call = InboxesCall(after, WAIT_S)
        found = await watch.backoff.call(lambda call=call: wait(call))  # type: ignore[misc]
        if found.reset or (epoch and found.epoch != epoch):
            # Ids of notifications may go back with the store.
            after = dict.fromkeys(after, "")
            watch.on_epoch()
        epoch = found.epoch
        for name, entries in found.entries.items():
            if entries and name in watch.hosts:
                after[name] = entries[-1].entry_id
                watch.on_inbox(name)
        if not found.entries:
            await asyncio.sleep(watch.poll_s)
