"""Read hosts, accept reports from agents without access to Redis, and carry out operator actions on hosts."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from redsched import aio
from redsched.errors import ClaimIdReused, ClaimState, InvalidRequest, NotFound, OtherAgent, Unavailable
from redsched.model import (
    AgentStamp,
    Amounts,
    AtDeadline,
    Claim,
    EndReason,
    HostReport,
    HostStatus,
    ListedStatus,
    OneOf,
    Request,
    values_of,
)
from redsched.model.conditions import IfMatch
from redsched.model.hosts import warnings_of
from redsched.model.limits import check_limit
from redsched.model.records.hosts import DrainProgress, HostView, PoolView, UnmovableClaim
from redsched.model.records.pages import Page
from redsched.model.records.problems import ClaimStateFacts
from redsched.model.validation import MAX_AMOUNT, check_name, check_status_reason, parse_int
from redsched.pacing import in_slices
from redsched.scheduler.cells import Cell, Cells, no_such_host
from redsched.scheduler.hosts.column_limit import refuse_too_many_columns
from redsched.scheduler.hosts.fields import keyed, lease_of, number, slot_views, status_from
from redsched.scheduler.preconditions import refuse_changed
from redsched.scheduler.results import ReportResult
from redsched.store.codec.attested import check_attested
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.claim_fields import AMOUNT, alternates_name, alternates_text, amounts_in
from redsched.store.codec.fields import draining_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import (
    EndedPlacement,
    HostHashes,
    InboxEntry,
    JournaledClaim,
    ReportReply,
    ScriptResult,
)
from redsched.store.codec.tags import operator_tag
from redsched.store.commands.base import chunks

MAX_CLAIMS_LOOKED_AT = 100
"""The most claims of a drained or evacuated host for which `get` checks whether they can be placed elsewhere."""
MAX_ENDED = 100
"""The most claims of a written-off host that one script call ends."""


class HostService:
    """Hosts over all cells of a scheduler. Reads go to the store, not to memory."""

    def __init__(self, cells: Cells, unmovable: Callable[[Cell, Sequence[Claim]], Awaitable[dict[str, str]]]) -> None:
        """`unmovable` returns, by id, the claims of a drained host that have no other place now, and why."""
        self._cells = cells
        self._unmovable = unmovable

    async def get(self, host: str, cell: str = "") -> HostView:
        """Return a host; for a drained or evacuated one, also the claims that have no other place now.

        `cell`, here and in other methods: the one that has the host; needed only if two have one with this name, which
        an audit reports. Raises NotFound, Settling, and ClaimState if `cell` is needed.
        """
        home, hashes = await self._find(host, cell)
        ids = await home.store.hosts.claim_ids(host)
        view = host_view(home, hashes, len(ids))
        if view.draining not in ("move", "evacuate"):
            return view
        claims = tuple((await home.store.claims.read(sorted(ids)[:MAX_CLAIMS_LOOKED_AT])).values())
        from redsched.scheduler.hosts.drain import failed_moves  # which also moves claims, and so decides

        reasons = sorted((await self._unmovable(home, claims)).items())
        unmovable = tuple(UnmovableClaim(claim_id, reason) for claim_id, reason in reasons)
        return replace(view, unmovable=unmovable, failed_moves=await failed_moves(home, claims, host))

    async def list(
        self,
        zone: OneOf = None,
        status: OneOf = None,
        limit: int = 100,
        after: str = "",
        *,
        trait: OneOf = None,
        aggregate: OneOf = None,
        label: OneOf = None,
        fits: Amounts | None = None,
    ) -> Page[HostView]:
        """Return hosts ordered by name that match each filter by any of its values.

        `status` is a ListedStatus: a host that was written off is listed as LOST only, until it returns. `label` has
        the form `key=value`. `fits` are amounts by class: hosts that decisions would give them to one claim on now.
        `after` is the `next` of the previous page: its last name. Raises InvalidRequest for invalid amounts.
        """
        check_limit(limit)
        if unknown := [one for one in values_of(status) if one not in set(ListedStatus)]:
            raise InvalidRequest(f"unknown status {unknown[0][:80]!r}: use {', '.join(ListedStatus)}")
        if unreadable := [one for one in values_of(label) if "=" not in one]:
            raise InvalidRequest(f"label {unreadable[0][:80]!r} is not of the form key=value")
        await self._cells.catch_up()
        filters = {"zone": zone, "status": status, "trait": trait, "aggregate": aggregate, "label": label}
        request = Request(fits) if fits else None
        found = list[tuple[str, Cell]]()
        for cell in self._cells:
            fitting = await in_slices(cell.decider.fitting_steps(request)) if request else None
            matching = cell.updater.columns.names_where(**filters)
            found += [(name, cell) for name in matching if fitting is None or name in fitting]
        names = sorted((one for one in found if one[0] > after), key=lambda one: one[0])
        # The next page begins after a name: one that two cells have is not split.
        last = names[min(limit, len(names)) - 1][0] if names else ""
        page = [one for one in names if one[0] <= last]
        views: dict[tuple[str, Cell], HostView] = {}
        for cell in dict.fromkeys(cell for _, cell in page):
            wanted = [name for name, one in page if one is cell]
            counts = await cell.store.hosts.claim_ids_of(wanted)
            for hashes, ids in zip(await cell.store.hosts.read(wanted), counts, strict=True):
                if hashes.fields:
                    views[hashes.name, cell] = host_view(cell, hashes, len(ids))
        following = page[-1][0] if len(names) > len(page) else None
        return Page(tuple(views[one] for one in page if one in views), following)

    async def report(
        self,
        report: HostReport,
        stamp: AgentStamp | None = None,
        epoch: str = "",
        held: Sequence[JournaledClaim] = (),
        ended: Sequence[EndedPlacement] = (),
    ) -> ReportResult:
        """Accept a host's report, and its attestation if the epoch requires one; with `epoch`, only to that epoch.

        Entries of `held` without a token become local claims. Raises NotFound (no such cell), ClaimState (the name is
        taken in another cell, or the cell has too many different slots), InvalidRequest (no journal can contain these
        claims), OtherAgent, ClaimIdReused (local work has the id of another claim).
        """
        check_attested(held, ended, epoch)
        cell = self._cells.named(report.cell)
        refuse_too_many_columns(cell, report)
        answer = await cell.store.hosts.report(report, stamp)
        if answer.outcome is Outcome.NOT_OWNER:
            raise _other_agent(report.name)
        known = [one for one in held if one.token]
        result = await self._attest(cell, report, answer, stamp, epoch, known, ended)
        if result.attested:
            await _restore_alternates(cell, report.name, known)
        if result.attested and answer.outcome is Outcome.OK:
            await self._resized(cell, report.name, known)
            await self._claim_local(cell, report.name, [one for one in held if not one.token])
        return replace(result, warnings=warnings_of(report.slots()))

    async def _attest(
        self,
        cell: Cell,
        report: HostReport,
        answer: ReportReply,
        stamp: AgentStamp | None,
        epoch: str,
        held: Sequence[JournaledClaim],
        ended: Sequence[EndedPlacement],
    ) -> ReportResult:
        if answer.attested:
            await self._end(cell, report, ended)
            if not held:
                return ReportResult(answer.outcome, answer.epoch, True, answer.version)
        attested = await cell.store.hosts.attest(report.name, epoch or answer.epoch, stamp, held, ended)
        if attested.outcome is Outcome.NOT_OWNER:
            raise _other_agent(report.name)
        # ALREADY_DONE for a late copy does not tell whether the host has attested; the answer to the report does.
        late = answer.outcome is Outcome.ALREADY_DONE and not answer.attested
        done = attested.outcome is Outcome.OK or (attested.outcome is Outcome.ALREADY_DONE and not late)
        return ReportResult(answer.outcome, attested.epoch, done, answer.version, attested.drop)

    async def heartbeat(self, name: str, lease_s: int, stamp: AgentStamp | None = None) -> str:
        """Renew a host's lease. Returns OK, or NOT_ATTESTED (the host must report to the new epoch).

        Raises NotFound, OtherAgent.
        """
        cell, _ = await self._find_speaking(name)
        answer = await cell.store.hosts.heartbeat(name, lease_s, stamp)
        if answer.outcome is Outcome.NOT_OWNER:
            raise _other_agent(name)
        # UNKNOWN for an existing host: its record is of another process of this agent. A report settles which is newer.
        return Outcome.NOT_ATTESTED if answer.outcome is Outcome.UNKNOWN else answer.outcome

    async def inbox(self, name: str, after: str = "") -> Sequence[InboxEntry]:
        """Return the inbox entries for a host's agent after the entry `after`. Raises NotFound."""
        cell, _ = await self._find_speaking(name)
        return await cell.store.hosts.inbox(name, after or "0-0")

    async def drain_progress(self, host: str, cell: str = "") -> DrainProgress:
        """Return what is left of a drain with `move` or an evacuation. Raises as `get`."""
        return (await self.get(host, cell)).drain

    async def enable(self, host: str, cell: str = "", if_match: IfMatch = None) -> None:
        """Allow new claims on a host again; withdraws what was declared for a host that is not known.

        With `if_match`, here and below, only if the host has one of these tags. Raises NotFound, PreconditionFailed,
        and ClaimState as `get`.
        """
        if if_match is None and not await self._homes(host) and await self._declare_ahead(host, HostStatus.ENABLED):
            return
        home, _ = await self._find(host, cell)
        _known(await home.store.hosts.set_status(host, HostStatus.ENABLED, if_match=if_match), host)

    async def disable(
        self, host: str, reason: str = "", ahead: bool = False, cell: str = "", if_match: IfMatch = None
    ) -> None:
        """Stop new claims on a host; its claims stay. `reason` says why, and is kept until the host is enabled.

        `ahead`: a host that is not known joins disabled; to enable or remove it withdraws that. Raises as `enable`, and
        InvalidRequest.
        """
        check_status_reason(reason)
        if if_match is None and not await self._homes(host):
            if not ahead:
                await self._cells.refuse_unsettled(f"host {host}")
                raise NotFound(f"{no_such_host(host).detail}; to disable it before its first report, use ahead")
            if await self._declare_ahead(host, HostStatus.DISABLED, reason):
                return
        home, _ = await self._find(host, cell)
        _known(await home.store.hosts.set_status(host, HostStatus.DISABLED, if_match=if_match, reason=reason), host)

    async def _declare_ahead(self, host: str, status: HostStatus, reason: str = "") -> bool:
        """Declare in each cell the status of a host that none knows, or withdraw it; return whether that was done.

        Nobody knows to which cell the host will report.
        """
        ahead = status is HostStatus.DISABLED
        answers = [await cell.store.hosts.set_status(host, status, reason=reason, ahead=ahead) for cell in self._cells]
        return any(one.outcome is not Outcome.UNKNOWN for one in answers)

    async def drain(
        self,
        host: str,
        move: bool = False,
        deadline_s: int = 0,
        then: AtDeadline | None = None,
        reason: str = "",
        cell: str = "",
        if_match: IfMatch = None,
    ) -> None:
        """Stop new claims on a host and empty it; with `move`, its claims are placed elsewhere, a few each second.

        Moves stop after `deadline_s` (0: when the host is enabled); `then` says what happens to the remaining claims,
        by default KEEP. Raises as `disable`.
        """
        check_status_reason(reason)
        if deadline_s and not move:
            raise InvalidRequest("deadline_s limits how long claims are moved off a host: set move too")
        if then and not deadline_s:
            raise InvalidRequest(f"then ({then}) applies at the deadline: set deadline_s too")
        home, _ = await self._find(host, cell)
        end, hosts = then or AtDeadline.KEEP, home.store.hosts
        _known(await hosts.set_status(host, HostStatus.DRAINING, move, deadline_s, end, if_match, reason), host)

    async def write_off(
        self,
        host: str,
        evacuate: bool = False,
        force: bool = False,
        reason: str = "",
        cell: str = "",
        if_match: IfMatch = None,
    ) -> None:
        """Write a host off: disable it, mark it down, and end its ending claims.

        With `evacuate`, its claims are placed elsewhere, and the host drops them if it returns. `reason` says why, and
        is kept until the host is enabled. Raises NotFound, InvalidRequest, PreconditionFailed, and, unless `force`,
        ClaimState while the host's lease runs.
        """
        check_status_reason(reason)
        home, _ = await self._find(host, cell)
        answer = _known(await home.store.hosts.write_off(host, evacuate, force, if_match, reason=reason), host)
        if answer.outcome is Outcome.ALIVE:
            raise _alive(host, int(answer.facts[0]))
        # A repeated call does this again, because an earlier one may have failed before this step.
        claims = list((await home.store.claims.read(await home.store.hosts.claim_ids(host))).values())
        for first in range(0, len(claims), MAX_ENDED):
            batch = claims[first : first + MAX_ENDED]
            objects = {thing for claim in batch for thing in counted_by(claim)}
            await home.store.claims.reconcile([claim.claim_id for claim in batch], objects)

    async def tag(self, host: str, cell: str = "") -> str:
        """Return the tag of a host's operator settings, for `if_match`. Raises NotFound, Settling, ClaimState."""
        _, hashes = await self._find(host, cell)
        return operator_tag(hashes.fields)

    async def remove(self, host: str, force: bool = False, cell: str = "", if_match: IfMatch = None) -> None:
        """Remove a host, which frees its name for other cells; with `force`, its claims end.

        Withdraws what was declared for a host that is not known, and frees the name of one whose record is lost. Raises
        NotFound, PreconditionFailed, and, unless `force`, ClaimState while it holds claims or its lease runs.
        """
        if not await self._homes(host, cell):
            bound_to = await self._bound_to(host)
            cells = [self._cells.named(cell)] if cell else list(self._cells)
            answers = [await one.store.hosts.forget(host) for one in cells]
            if any(one.outcome is Outcome.OK for one in answers) or bound_to in {one.name for one in cells}:
                return
        home, _ = await self._find(host, cell)
        answer = refuse_changed(await home.store.hosts.forget(host, force, if_match), f"host {host}")
        # UNKNOWN for a host found just before means that an earlier attempt of this call removed it.
        if answer.outcome is Outcome.IN_USE:
            raise ClaimState(f"host {host} holds claims: release them first, or force it, which ends them")
        if answer.outcome is Outcome.ALIVE:
            raise _reports(host, int(answer.facts[0]))

    async def _homes(self, name: str, cell: str = "") -> Sequence[tuple[Cell, HostHashes]]:
        """Return the cells that have a host with this name, each with its hashes; with `cell`, only that one.

        A cell whose server is away keeps nobody from a host in another one: a name is in one cell. Raises Unavailable
        if no other cell has it.
        """
        check_name("host", name)
        cells = [self._cells.named(cell)] if cell else list(self._cells)
        found = list[tuple[Cell, HostHashes]]()
        away: Unavailable | None = None
        for one, hashes in zip(cells, await aio.gather(_read(one, name) for one in cells), strict=True):
            if isinstance(hashes, Unavailable):
                away = hashes
            elif hashes.fields:
                found.append((one, hashes))
        if away is not None and not found:
            raise away
        return found

    async def _find(self, name: str, cell: str = "") -> tuple[Cell, HostHashes]:
        found = await self._homes(name, cell)
        if len(found) > 1:
            names = [one.name for one, _ in found]
            raise ClaimState(
                f"host {name} is in {' and '.join(f'cell {one}' for one in names)}: name one of them as `cell`",
                ClaimStateFacts(host=name, cells=tuple(names)),
            )
        if found:
            return found[0]
        await self._cells.refuse_unsettled(f"host {name}")
        raise no_such_host(name, cell)

    async def _find_speaking(self, name: str) -> tuple[Cell, HostHashes]:
        """Return the host that a call in the name of a host is about: of two, the one in the cell that has the name."""
        bound_to = ""
        with suppress(Unavailable):  # the server with the key of the name may be away, while that of the cell is there
            bound_to = await self._bound_to(name)
        return await self._find(name, bound_to)

    async def _bound_to(self, name: str) -> str:
        """Return the cell here to which a host's name is bound; '' for none."""
        bound_to = await next(iter(self._cells)).store.homes.cell_of(name)
        return bound_to if any(one.name == bound_to for one in self._cells) else ""

    async def _end(self, cell: Cell, report: HostReport, ended: Sequence[EndedPlacement]) -> None:
        for one in ended:
            await cell.store.claims.gone(report.name, one.id, one.token, EndReason.RELEASED, report.external)

    async def _resized(self, cell: Cell, host: str, held: Sequence[JournaledClaim]) -> None:
        """Record completed resizes: the work of a claim that the report lists with its new token was resized."""
        claims = await cell.store.claims.read([one.id for one in held])
        for one in held:
            here = claims[one.id].at(one.token) if one.id in claims else None
            if here and here.resizing_to:
                await cell.store.claims.resized(host, one.id, one.token, amounts_in(one.record, AMOUNT))

    async def _claim_local(self, cell: Cell, host: str, local: Sequence[JournaledClaim]) -> None:
        """Create claims for local work: it runs on the host and has no token yet, and therefore no claim."""
        for one in local:
            token = ""
            for _ in range(2):
                project, consumer = one.record.get("project", ""), one.record.get("consumer", "")
                answer = await cell.store.claims.report_local(
                    host, one.id, amounts_in(one.record, AMOUNT), project, consumer, token
                )
                if answer.outcome is Outcome.CONFLICT:
                    raise ClaimIdReused(
                        f"local work on {host} has the id {one.id} of another claim: give it a different id, "
                        "or report its token"
                    )
                if answer.outcome is not Outcome.STALE:
                    break
                # Reports arrive in order, so this one is newer than the claim that the store has for this id.
                token = answer.facts[0]


def _other_agent(name: str) -> OtherAgent:
    return OtherAgent(f"another agent with a valid lease speaks for host {name}: stop one of the two")


def _alive(name: str, lease_ms: int) -> ClaimState:
    lease_s = -(-lease_ms // 1000)
    return ClaimState(
        f"host {name} is alive: its lease runs for {lease_s} s. If written off, it would attest again and keep its "
        "claims. Drain it with moves to empty it; or stop its agent and try again once the lease has expired; force it "
        "only if its machine is off",
        ClaimStateFacts(host=name, lease_ms=lease_ms),
    )


def _reports(name: str, lease_ms: int) -> ClaimState:
    lease_s = -(-lease_ms // 1000)
    return ClaimState(
        f"host {name} is alive: its lease runs for {lease_s} s, and its agent would report it again. Disable it to "
        "stop new claims; to remove it, stop its agent and try again once the lease has expired, or force it",
        ClaimStateFacts(host=name, lease_ms=lease_ms),
    )


def _known(answer: ScriptResult, name: str) -> ScriptResult:
    if answer.outcome is Outcome.UNKNOWN:
        raise no_such_host(name)
    return refuse_changed(answer, f"host {name}")


def host_view(cell: Cell, hashes: HostHashes, claims: int) -> HostView:
    """Build a view from a host's hashes. A field that a manual edit made unreadable is shown as admitting nothing."""
    fields = hashes.fields
    traits = keyed("trait.", fields)
    lease = lease_of(fields, cell.updater.now_ms())
    return HostView(
        name=hashes.name,
        cell=cell.name,
        zone=fields.get("zone", ""),
        status=status_from(fields),
        alive=lease.alive,
        attested=fields.get("epoch") == cell.updater.epoch,
        written_off=lease.written_off,
        version=parse_int(fields.get("version", ""), 0),
        lease_s=parse_int(fields.get("lease_ms", ""), 0) // 1000,
        down_since_ms=lease.down_since_ms,
        slots=slot_views(fields),
        traits=frozenset(one for one in traits if "/" not in one),
        labels=keyed("label.", fields),
        metrics={name: number(value) for name, value in keyed("metric.", fields).items()},
        claims=claims,
        pools=_pools(keyed("pool.", fields), traits, keyed("device.", fields)),
        aggregates=frozenset(keyed("aggregate.", fields)),
        draining=draining_of(fields, cell.updater.now_ms(), cell.updater.epoch),
        drain_deadline_ms=parse_int(fields.get("drain_deadline_ms", ""), 0) or None,
        drain_then=fields.get("drain_then", ""),
        status_reason=fields.get("status_reason", ""),
        reservation=fields.get("reservation", ""),
        reservation_request=fields.get("reservation_request", ""),
        reservation_project=fields.get("reservation_project", ""),
        reservation_until_ms=parse_int(fields.get("reservation_until_ms", ""), 0) or None,
        kept={slot: parse_int(text, MAX_AMOUNT) for slot, text in sorted(keyed("kept.", fields).items())},
    )


async def _read(cell: Cell, name: str) -> HostHashes | Unavailable:
    try:
        [hashes] = await cell.store.hosts.read([name])
    except Unavailable as error:
        return error
    return hashes


def _pools(parents: Mapping[str, str], traits: Iterable[str], devices: Mapping[str, str]) -> dict[str, PoolView]:
    """Return pools by name. The store has the host itself as parent `/`, and a pool's trait as `gpu0/CUSTOM_GPU_T4`."""
    of: dict[str, set[str]] = {name: set() for name in parents}
    for pool, slash, trait in (one.rpartition("/") for one in traits):
        if slash and pool in of:
            of[pool].add(trait)
    return {
        name: PoolView(parents[name].strip("/"), frozenset(of[name]), devices.get(name, "")) for name in sorted(parents)
    }


async def _restore_alternates(cell: Cell, host: str, held: Sequence[JournaledClaim]) -> None:
    """Restore the lists of alternates that the store has lost, of claims that are on the host."""
    with_lists = [one for one in held if one.alternates]
    claims = await cell.store.claims.read([one.id for one in with_lists]) if with_lists else {}
    here = [one for one in with_lists if one.id in claims and host in claims[one.id].hosts]
    lists = {alternates_name(one.id): alternates_text(one.alternates) for one in here}
    for batch in chunks(await cell.store.texts.missing(lists)):
        await aio.gather(cell.store.texts.restore(name, lists[name]) for name in batch)
