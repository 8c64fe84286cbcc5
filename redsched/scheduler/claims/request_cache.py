"""The requests that the store keeps, so that their claims can be placed again.

The text of a request is sent with a claim call, but only once for many claims: a scheduler remembers which texts it has
written in the current epoch, and when.
"""

from collections import OrderedDict

from redsched import aio
from redsched.errors import ClaimState, InvalidRequest
from redsched.model import Claim, Request
from redsched.model.records.problems import ClaimStateFacts
from redsched.store.cell import CellStore
from redsched.store.codec.claim_fields import request_name

KEPT_S = 86_400.0
"""How long the store keeps a request that no later claim writes again."""
MOST = 10_000


class RequestCache:
    """The requests of one cell."""

    def __init__(self, store: CellStore) -> None:
        self._store = store
        self._written: OrderedDict[str, tuple[str, float]] = OrderedDict()
        """By digest: the epoch, and the time of the write by this process' monotonic clock. The latest comes last."""

    def to_write(self, request: Request, digest: str, epoch: str) -> str:
        """Return the text to send with a claim call; '' if the store has it already."""
        written = self._written.get(digest)
        if written is not None and written[0] == epoch and aio.now_s() - written[1] < KEPT_S / 2:
            return ""
        return request.canonical()

    def has_written(self, digest: str, epoch: str) -> None:
        """Record that a claim call has written this request."""
        self._written[digest] = (epoch, aio.now_s())
        self._written.move_to_end(digest)
        if len(self._written) > MOST:
            self._written.popitem(last=False)

    async def of(self, claim: Claim) -> Request:
        """Return the whole request from which a claim was made. Raises ClaimState if the store no longer has it."""
        text = await self._store.texts.get(request_name(claim.digest)) if claim.digest else None
        if text is None:
            raise ClaimState(
                f"the store does not have the request of claim {claim.claim_id}: it has expired, or the claim was made "
                "by its host. Make a new claim, and release this one",
                ClaimStateFacts(claim_id=claim.claim_id),
            )
        try:
            return Request.from_canonical(text)
        except InvalidRequest as error:
            raise ClaimState(
                f"the request of claim {claim.claim_id}: {error.detail}", ClaimStateFacts(claim_id=claim.claim_id)
            ) from error
