"""Recognize the replies of a primary that was replaced.

After a failover, the former primary may serve its open connections for a moment. A process that has seen a newer epoch,
which the new primary started, must reject the former primary's replies: the writes that these acknowledge are lost, and
the writes that this process has made on the new primary are missing there.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from redsched import aio
from redsched.model.tokens import is_newer
from redsched.store.codec.wire import Reply

PATIENCE_S = 5.0
"""How long replies of older epochs are rejected after the last reply of the newest epoch. After that they are accepted,
because if two primaries have started epochs, the one that remains may have the older epoch."""

_EPOCH = re.compile(r"(\d+)-\w+")


@dataclass(slots=True)
class _Newest:
    epoch: str
    seen_s: float


class ReplacedPrimaries:
    """The newest epoch of each cell that this process has seen, by the key of the cell's `meta`."""

    def __init__(self, now_s: Callable[[], float] = aio.now_s) -> None:
        self._now_s = now_s
        self._newest = dict[str, _Newest]()

    def is_outdated(self, meta: str, reply: Reply) -> bool:
        """Return whether a script's reply is of an older epoch than another recent reply of the same cell."""
        epoch = reply[1] if isinstance(reply, list) and len(reply) > 1 else None
        newest, now_s = self._newest.get(meta), self._now_s()
        if newest is not None and newest.epoch == epoch:
            newest.seen_s = now_s
            return False
        if not (isinstance(epoch, str) and _EPOCH.fullmatch(epoch)):
            return False  # the replies of this script have another form
        if newest is not None and is_newer(newest.epoch, epoch) and now_s - newest.seen_s < PATIENCE_S:
            return True
        self._newest[meta] = _Newest(epoch, now_s)
        return False
