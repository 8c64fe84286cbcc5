"""Long texts of claims, each in a key of its own: requests as canonical JSON, lists of alternates, decision notes.

They are named as their keys end: `request:<digest>`, `alternates:<claim id>`, `decision:<token>`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from redsched.model import Claim, DecisionNote
from redsched.model.payload import payload_in
from redsched.pacing import paged
from redsched.store.codec.claim_fields import (
    ALTERNATES,
    DECISION,
    REQUEST,
    alternates_from,
    alternates_name,
    decision_name,
    has_alternates,
    request_name,
)
from redsched.store.codec.fields import placement_fields
from redsched.store.commands.base import CLAIMS_AT_ONCE, CellClient, chunks
from redsched.store.commands.notes import NOTE_MS, DecisionNotes

KEPT_MS = {REQUEST: 24 * 3600 * 1000, ALTERNATES: 3600 * 1000, DECISION: NOTE_MS}
"""How long texts are kept, by kind, unless an audit finds that a claim refers to them. The scripts have the first two.

Claims with equal requests share one text. Lists are not shared, so a short time keeps those of ended claims few.
"""


class TextCommands:
    """Reads and writes of the texts of one cell."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell
        self.decisions = DecisionNotes(cell)

    async def get(self, name: str) -> str | None:
        """Return a text; None if it is no longer kept."""
        return (await self.read([name])).get(name)

    async def read(self, names: Sequence[str]) -> dict[str, str]:
        """Return texts by name, without those that are no longer kept."""
        if not names:
            return {}
        # Not MGET, which a cluster refuses while it moves the slot of these keys.
        pipe = self._cell.reader.pipeline(transaction=False)
        for name in names:
            pipe.get(self._cell.keys.text(name))
        with self._cell.reading():
            texts = await pipe.execute()
        return {name: text for name, text in zip(names, texts, strict=True) if text is not None}

    async def missing(self, names: Iterable[str]) -> list[str]:
        """Return the names of texts that are no longer kept."""
        missing: list[str] = []
        for some in chunks(sorted(names)):
            pipe = self._cell.reader.pipeline(transaction=False)
            for name in some:
                pipe.exists(self._cell.keys.text(name))
            with self._cell.reading():
                found = await pipe.execute() if some else []
            missing += [name for name, is_there in zip(some, found, strict=True) if not is_there]
        return missing

    async def extend(self, names: Iterable[str]) -> None:
        """Keep these texts for as long as new ones."""
        async for some in paged(names, CLAIMS_AT_ONCE):
            pipe = self._cell.reader.pipeline(transaction=False)
            for name in some:
                pipe.pexpire(self._cell.keys.text(name), _kept_ms(name))
            with self._cell.reading():
                await pipe.execute()

    async def restore(self, name: str, text: str) -> None:
        """Restore a text that the store has lost. (keep.lua)"""
        await self._cell.answer("keep", (self._cell.keys.text(name),), (text, _kept_ms(name)))

    async def alternates(self, claims: Mapping[str, Claim]) -> dict[str, tuple[str, ...]]:
        """Return the stored alternates of these claims by id, without those that have none."""
        ids = [one.claim_id for one in claims.values() if has_alternates(one.raw)]
        texts = await self.read([alternates_name(claim_id) for claim_id in ids])
        return {one: alternates_from(text) for one in ids if (text := texts.get(alternates_name(one)))}

    async def decision_and_payload(self, claim: Claim) -> tuple[DecisionNote | None, Any]:
        """Return how the host of the claim's newest placement was chosen, and its payload; None for what is not kept.

        Both are read in one round trip.
        """
        notes = {one.get("placed", one["token"]): decision_name(one) for one in placement_fields(claim.raw)}
        request = request_name(claim.digest)
        await self.decisions.write()
        texts = await self.read([*notes.values(), *([] if claim.is_local or not claim.digest else [request])])
        found = (
            DecisionNote.from_text(texts.get(notes[one.placed], ""), one.placed, one.host)
            for one in reversed(claim.placements)
        )
        return next((one for one in found if one is not None), None), payload_in(texts.get(request))


def _kept_ms(name: str) -> int:
    return KEPT_MS[name.partition(":")[0]]
