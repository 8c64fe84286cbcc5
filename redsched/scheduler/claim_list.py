"""ClaimList: reading claims, one and many. What is answered is read from the store, not from memory."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from redsched.errors import InvalidRequest
from redsched.model import Claim, ClaimStatus
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.views import Page
from redsched.store.reads import HOSTS_AT_ONCE


class ClaimList:
    """Claims over all cells of a scheduler."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    async def get(self, claim_id: str) -> Claim:
        """Return a claim, an ended one too while it is remembered. Raises Unknown, Settling."""
        cell, claim = await self._cells.find_claim(claim_id)
        return (await _with_reasons(cell, [claim]))[0]

    async def list(
        self,
        host: str | None = None,
        project: str | None = None,
        consumer: str | None = None,
        state: ClaimStatus | None = None,
        zone: str | None = None,
        limit: int = 100,
        after: str = "",
    ) -> Page[Claim]:
        """Claims that have not ended, by host and id. `after` is the `next` of the page before."""
        await self._cells.catch_up()
        after_host, after_id = _cursor(after)
        wanted = {"project": project, "consumer": consumer, "state": state}
        found: list[Claim] = []
        hosts = [one for one in self._hosts(host, zone) if one[1] >= after_host]
        for first in range(0, len(hosts), HOSTS_AT_ONCE):
            for claim in await _claims_on(hosts[first : first + HOSTS_AT_ONCE], only_main=host is None):
                if (claim.host, claim.id) <= (after_host, after_id):
                    continue
                if any(value is not None and getattr(claim, name) != value for name, value in wanted.items()):
                    continue
                if len(found) == limit:
                    return Page(tuple(found), f"{found[-1].host}:{found[-1].id}")
                found.append(claim)
        return Page(tuple(found))

    def _hosts(self, host: str | None, zone: str | None) -> Iterator[tuple[Cell, str]]:
        names = ((cell, name) for cell in self._cells for name in cell.mirror.columns.names_where(zone, None))
        for cell, name in sorted(names, key=lambda one: one[1]):
            if host is None or host == name:
                yield cell, name


async def _claims_on(hosts: "list[tuple[Cell, str]]", only_main: bool) -> "list[Claim]":
    """The claims on these hosts, each as it is there; with `only_main` only on the host of its main placement."""
    found: list[Claim] = []
    for cell in dict.fromkeys(cell for cell, _ in hosts):
        names = [name for one, name in hosts if one is cell]
        async for living in cell.store.living_on(names):
            for claim in await _with_reasons(cell, living):
                views = (claim.view(one) for one in claim.placements[: 1 if only_main else None])
                found += [view for view in views if view.host in names]
    return sorted(found, key=lambda one: (one.host, one.id))


async def _with_reasons(cell: Cell, claims: "Sequence[Claim]") -> "list[Claim]":
    """The claims, each with what is kept of why it failed. What is older than a claim was said of another by its id."""
    reasons = await cell.store.read_reasons(one.id for one in claims)
    return [
        replace(one, reason=reasons[one.id])
        if one.id in reasons and reasons[one.id].at_ms >= (one.claimed_at_ms or 0)
        else one
        for one in claims
    ]


def _cursor(after: str) -> tuple[str, str]:
    host, colon, claim_id = after.partition(":")
    if after and not (host and colon and claim_id):
        raise InvalidRequest(f"after {after[:140]!r} is not the `next` of a page of claims: pass it as it was given")
    return host, claim_id
