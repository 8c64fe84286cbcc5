"""Claims over REST: one, lists, verbs, and verbs on many."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from redsched.cli.remote.base import MAX_PAGE, Part, names
from redsched.client import calls, operator_calls
from redsched.client.call_parts import Pages, reader
from redsched.client.exchange import Call
from redsched.model import Amounts, Claim, OneOf
from redsched.scheduler import BulkPage, BulkResult, ClaimFilter, Page


class RemoteClaims(Part):
    """As `Scheduler.claims`."""

    async def get(self, claim_id: str) -> Claim:
        """Return a claim."""
        return await self.client.run(calls.get_claim(claim_id))

    async def list(
        self,
        host: OneOf = None,
        project: OneOf = None,
        consumer: OneOf = None,
        state: OneOf = None,
        zone: OneOf = None,
        cell: OneOf = None,
        limit: int = 100,
        after: str = "",
        *,
        claimed_before_ms: int = 0,
        claimed_after_ms: int = 0,
        owner: OneOf = None,
    ) -> Page[Claim]:
        """Return a page of the claims that match the filters."""
        wanted: dict[str, Any] = {
            **names(host=host, project=project, consumer=consumer, state=state, zone=zone, cell=cell, owner=owner),
            "claimed_before_ms": claimed_before_ms,
            "claimed_after_ms": claimed_after_ms,
        }
        return await self.page(calls.list_claims(**wanted, page_size=limit, after=after))

    async def confirm(self, claim_id: str, token: str) -> Claim:
        """Confirm that the work runs."""
        return await self.client.run(calls.confirm_claim(claim_id, token))

    async def renew(self, claim_id: str, token: str, lease_s: int) -> Claim:
        """Renew the lease."""
        return await self.client.run(calls.renew_claim(claim_id, token, lease_s))

    async def resize(self, claim_id: str, token: str, slots: Amounts, resources: Amounts) -> Claim:
        """Change amounts in place."""
        return await self.client.run(calls.resize_claim(claim_id, token, resources, slots))

    async def shelve(self, claim_id: str, token: str) -> Claim:
        """Free the amounts and keep the claim."""
        return await self.client.run(calls.shelve_claim(claim_id, token))

    async def release(self, claim_id: str, token: str = "", force: bool = False) -> bool:
        """Release a claim; False while its host has to stop the work."""
        return await self.client.run(calls.release_claim(claim_id, token, force)) is None


class RemoteMigrations(Part):
    """As `Scheduler.migrations`."""

    async def fail(self, claim_id: str, token: str, alternates: Collection[str] | None = None) -> Claim:
        """Report that the work could not be started."""
        given = None if alternates is None else list(alternates)
        return await self.client.run(calls.fail_claim(claim_id, token, given))

    async def move(
        self,
        claim_id: str,
        token: str,
        hosts: Collection[str] = (),
        live: bool = False,
        deadline_s: int = 0,
        queue_timeout_s: int = 0,
    ) -> tuple[Claim]:
        """Move a claim; as in the library, the claim at its target is the first of the results."""
        call = calls.move_claim(claim_id, token, hosts, live, deadline_s, queue_timeout_s)
        return (await self.client.run(call),)

    async def unshelve(self, claim_id: str, queue_timeout_s: int = 0) -> tuple[Claim]:
        """Place a shelved claim again; likewise."""
        return (await self.client.run(calls.unshelve_claim(claim_id, queue_timeout_s)),)


class RemoteBulk(Part):
    """As `Scheduler.bulk`: a page of results for each call."""

    async def release(
        self,
        wanted: ClaimFilter,
        force: bool = False,
        dry_run: bool = False,
        limit: int = MAX_PAGE,  # noqa: ARG002 - the client's pages are of this size
        after: str = "",
    ) -> BulkPage:
        """Release claims."""
        return await self._bulk_page(
            operator_calls.bulk_release(force=force, dry_run=dry_run, **_filters(wanted)), after
        )

    async def renew(
        self,
        wanted: ClaimFilter,
        lease_s: int,
        dry_run: bool = False,
        limit: int = MAX_PAGE,  # noqa: ARG002
        after: str = "",
    ) -> BulkPage:
        """Renew leases."""
        return await self._bulk_page(operator_calls.bulk_renew(lease_s, dry_run=dry_run, **_filters(wanted)), after)

    async def shelve(
        self,
        wanted: ClaimFilter,
        dry_run: bool = False,
        limit: int = MAX_PAGE,  # noqa: ARG002
        after: str = "",
    ) -> BulkPage:
        """Shelve claims."""
        return await self._bulk_page(operator_calls.bulk_shelve(dry_run=dry_run, **_filters(wanted)), after)

    async def unshelve(
        self,
        wanted: ClaimFilter,
        dry_run: bool = False,
        limit: int = MAX_PAGE,  # noqa: ARG002
        after: str = "",
    ) -> BulkPage:
        """Place shelved claims again."""
        return await self._bulk_page(operator_calls.bulk_unshelve(dry_run=dry_run, **_filters(wanted)), after)

    async def _bulk_page(self, listing: Pages[BulkResult], after: str) -> BulkPage:
        """Return a page of results with the number of claims of others, which the client's pages leave out."""
        call: Call[Any] = listing.after(after)
        found: BulkPage = await self.client.run(replace(call, read=reader(BulkPage)))
        return found


def _filters(wanted: ClaimFilter) -> dict[str, Any]:
    """Return a filter as parameters of the client: its times are numbers, and all else names."""
    given = wanted.given
    times = {name: str(value) for name, value in given.items() if isinstance(value, int) and value}
    return names(**{name: value for name, value in given.items() if not isinstance(value, int)}) | times
