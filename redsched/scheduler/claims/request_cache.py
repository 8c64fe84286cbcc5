"""The requests that the store keeps for the claims made by them, so that these can be placed again.

The text goes with the claim, once for many claims: a scheduler remembers which it has written in this epoch, and for
how long the store will have it.
"""

from collections import OrderedDict

from redsched import aio
from redsched.errors import ClaimState, InvalidRequest
from redsched.model import Claim, Request
from redsched.store.cell import CellStore

KEPT_S = 86_400.0
"""How long the store keeps a request that no later claim has brought again."""
MOST = 10_000


class RequestCache:
    """Those of one cell."""

    def __init__(self, store: CellStore) -> None:
        self._store = store
        self._written: OrderedDict[str, tuple[str, float]] = OrderedDict()
        """By digest: the epoch, and when it was written by this process' monotonic clock. The latest last."""

    def to_write(self, request: Request, digest: str, epoch: str) -> str:
        """The text to send with a claim; '' where the store has it."""
        written = self._written.get(digest)
        if written is not None and written[0] == epoch and aio.now_s() - written[1] < KEPT_S / 2:
            return ""
        return request.canonical()

    def has_written(self, digest: str, epoch: str) -> None:
        """A claim with this text was made."""
        self._written[digest] = (epoch, aio.now_s())
        self._written.move_to_end(digest)
        if len(self._written) > MOST:
            self._written.popitem(last=False)

    async def of(self, claim: Claim) -> Request:
        """The request that a claim was made by: of all its places. Raises ClaimState where it is not known."""
        text = await self._store.requests.get(claim.digest) if claim.digest else None
        if text is None:
            raise ClaimState(
                f"the request of claim {claim.id} is not known to the store: the claim is older than what is kept, or "
                "was made by its host. Claim anew, and release this one",
                {"claim_id": claim.id},
            )
        try:
            return Request.from_canonical(text)
        except InvalidRequest as error:
            raise ClaimState(f"the request of claim {claim.id}: {error.detail}", {"claim_id": claim.id}) from error
