"""Scripts about what only a claim's own host can make true: resize, resized, local."""

from collections.abc import Collection

from redsched.model import Amounts
from redsched.model.validation import check_amount, check_name, check_slot
from redsched.store.codec.claim_codec import drawn_on
from redsched.store.codec.results import ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.claims import ClaimCalls

LOCAL = "local"
"""The digest of a local claim. No request has it: theirs are hexadecimal, so an id of both kinds is a CONFLICT."""


class AgentCalls(ClaimCalls):
    """One coroutine for each script that a host has to have its part in."""

    async def resize(
        self,
        host: str,
        claim_id: str,
        token: str,
        amounts: Amounts,
        things: Collection[str] = (),
        limited: bool = False,
    ) -> ScriptResult:
        """The owner wants other amounts: all of them, by slot. (resize.lua)

        OK | ALREADY_DONE (this token was resized to these amounts; facts of both: token, state) | FULL (facts: slot) |
        MOVING (it is being moved) | ENDING | ENDED | STALE | UNKNOWN | NOT_ATTESTED | OVER_QUOTA (facts: see
        `exceeded`) | UNSHARED. `things` as in `fail`, of what it holds and of what it is to hold; `limited` as in a
        ClaimCall.
        """
        _check(amounts)
        return await self._about("resize", host, claim_id, token, int(limited), *flat(amounts), things=things)

    async def resized(
        self, host: str, claim_id: str, token: str, amounts: Amounts, things: Collection[str] = ()
    ) -> ScriptResult:
        """The host's word that the work has these amounts now, the wanted or the old ones. (resized.lua)

        OK | ALREADY_DONE (no resize is under way) | CONFLICT (more than the claim holds) | ENDING | ENDED | STALE |
        UNKNOWN | NOT_ATTESTED. `things` as in `fail`.
        """
        _check(amounts)
        return await self._about("resized", host, claim_id, token, *flat(amounts), things=things)

    async def claim_local(
        self, host: str, claim_id: str, amounts: Amounts, project: str = "", consumer: str = "", token: str = ""
    ) -> ScriptResult:
        """The host's word that it runs work which nobody claimed, or that such work has other amounts. (local.lua)

        `token` is that of the claim's last placement that the host knows of, '' for none. OK | ALREADY_DONE (facts of
        both: token, placed) | STALE (the store knows a later placement; facts: its token, '' for a claim that has
        ended) | CONFLICT (the id is another claim's) | NOT_ATTESTED.
        """
        check_name("claim", claim_id)
        _check(amounts)
        things = drawn_on("", amounts, project=project)
        return await self._about("local", host, claim_id, token, project, consumer, *flat(amounts), things=things)


def _check(amounts: Amounts) -> None:
    for slot, amount in amounts.items():
        check_amount(check_slot(slot), amount, minimum=1)
