"""The requests from which claims were made, kept by digest so that those claims can be placed again."""

from collections.abc import Iterable, Sequence

from redsched.pacing import paged
from redsched.store.commands.base import CLAIMS_AT_ONCE, CellClient, chunks

REQUEST_KEPT_MS = 24 * 3600 * 1000
"""How long requests are kept. The same value is in include/placing/claim_write.lua."""


class RequestCommands:
    """Reads and writes of kept requests."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def get(self, digest: str) -> str | None:
        """Return a request as canonical JSON; None if it is no longer kept."""
        return (await self.read([digest])).get(digest)

    async def read(self, digests: Sequence[str]) -> dict[str, str]:
        """Return requests as canonical JSON by digest, without those that are no longer kept."""
        with self._cell.reading():
            texts = await self._cell.reader.mget(map(self._cell.keys.request, digests))
        return {digest: text for digest, text in zip(digests, texts, strict=True) if text is not None}

    async def missing(self, digests: Iterable[str]) -> list[str]:
        """Return the digests whose request is no longer kept."""
        missing: list[str] = []
        for some in chunks(sorted(digests)):
            pipe = self._cell.reader.pipeline(transaction=False)
            for digest in some:
                pipe.exists(self._cell.keys.request(digest))
            with self._cell.reading():
                found = await pipe.execute() if some else []
            missing += [digest for digest, is_there in zip(some, found, strict=True) if not is_there]
        return missing

    async def extend(self, digests: Iterable[str]) -> None:
        """Keep these requests for another day."""
        async for some in paged(digests, CLAIMS_AT_ONCE):
            pipe = self._cell.reader.pipeline(transaction=False)
            for digest in some:
                pipe.pexpire(self._cell.keys.request(digest), REQUEST_KEPT_MS)
            with self._cell.reading():
                await pipe.execute()

    async def restore(self, digest: str, text: str) -> None:
        """Restore a request that the store has lost. (keep.lua)"""
        await self._cell.answer("keep", (self._cell.keys.request(digest),), (text, REQUEST_KEPT_MS))
