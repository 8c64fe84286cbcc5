"""Exported cells for tests of plans, built without a store."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from redsched.cache.columns import Columns
from redsched.decide.plugins.registry import plugin_registry
from redsched.errors import RedschedError
from redsched.model import LEASED, Aggregate, HostReport, Inventory, Pool, Request, ServerGroup, SharedPool
from redsched.model.records.plans import Aim, CapacityPlan, LeavingPlan, RebalancePlan
from redsched.operate.backup.archive import FORMAT, Archive, Head
from redsched.operate.plans.cell_copy import CellCopy
from redsched.operate.plans.questions import CapacityQuestion, LeavingQuestion, answer, new_host_fields
from redsched.operate.plans.rebalancing import RebalanceQuestion, VerifyQuestion
from redsched.settings import Settings
from redsched.store.codec.fields import aggregate_fields, claim_from, group_fields, pool_fields
from redsched.store.codec.keys import Kind

T = TypeVar("T")

SETTINGS = Settings()
EPOCH = "1-a"
MILLI = "CUSTOM_GPU_MILLI"


def host(name: str, gpus: int = 0, zone: str = "default", rack: str = "", **totals: int) -> HostReport:
    """Return a host with these amounts and so many GPUs of 1000 shares."""
    inventories = {one: Inventory(total) for one, total in totals.items()}
    pools = {f"gpu{number}": Pool({MILLI: Inventory(1000)}) for number in range(gpus)}
    return HostReport(name, inventories, "c1", zone, {"rack": rack} if rack else {}, pools=pools)


def claim(
    host_name: str, request: Request, number: int, amounts: Mapping[str, int] | None = None, **fields: str
) -> dict[str, str]:
    """Return the hash of an active claim on a host; by default with the request's own amounts."""
    held = {f"amount.{slot}": str(amount) for slot, amount in (amounts or request.resources).items()}
    token = f"{EPOCH}.{number}"
    known = {"host": host_name, "state": "active", "token": token, "placed": token, "digest": request.digest()}
    group = {"group": request.server_group, "counted.zone": "default"} if request.server_group else {}
    return {**known, **held, **group, "project": request.project, "claimed_at_ms": str(number), **fields}


def archive(
    hosts: Sequence[HostReport],
    claims: Mapping[str, tuple[str, Request]] | None = None,
    others: Mapping[str, Mapping[str, str]] | None = None,
    requests: Iterable[Request] = (),
    **declared: Any,
) -> Archive:
    """Return an exported cell. `claims` has host and request by id; `others` are whole hashes, made by `requests`."""
    found = {name: claim(*one, number) for number, (name, one) in enumerate((claims or {}).items(), 1)}
    asked = [*(one for _, one in (claims or {}).values()), *requests]
    texts = {one.digest(): one.canonical() for one in asked}
    head = Head(FORMAT, "1", "c1", EPOCH, 1, 1, 0, 0)
    return Archive(head, hosts=tuple(hosts), claims={**found, **(others or {})}, requests=texts, **declared)


def copy(of: Archive, settings: Settings = SETTINGS) -> CellCopy:
    """Return a new copy of an exported cell, whose hosts are all up."""
    claims = {name: claim_from("c1", name, fields) for name, fields in of.claims.items()}
    unready = {one.gang for one in claims.values() if one.gang and one.state in LEASED}
    made = CellCopy("c1", _columns(of), settings, plugin_registry(settings), claims, of.requests, unready)
    for one in claims.values():
        for place in one.placements:
            made._add(place.host, place.slots, one.server_group, place.counted, 1, place.state in LEASED)
    return made


def _columns(of: Archive) -> Columns:
    """Return the hosts and what is declared, with nothing claimed."""
    columns = Columns(len(of.hosts))
    columns.set_epoch(EPOCH)
    for report in of.hosts:
        members = {f"aggregate.{one.name}": "1" for one in of.aggregates if report.name in one.hosts}
        columns.put(report.name, new_host_fields(report, EPOCH) | members)
    for aggregate in of.aggregates:
        columns.declared.put(Kind.AGGREGATE, aggregate.name, aggregate_fields(aggregate))
    for group in of.groups:
        columns.declared.put(Kind.SERVER_GROUP, group.name, group_fields(group))
    for pool in of.pools:
        columns.declared.put(Kind.POOL, pool.name, pool_fields(pool))
    return columns


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans on copies of an exported cell, without a store, of up to `limit_s` each."""

    of: Archive
    settings: Settings = SETTINGS
    limit_s: float = 60.0

    def capacity(self, request: Request, by: str = "") -> CapacityPlan:
        """Return how many more of a request fit, and whether all claims would without any one host or label value."""
        return self._ask(CapacityQuestion(request, by))

    def drain(self, hosts: Sequence[str]) -> LeavingPlan:
        """Return where the claims of hosts would go in a drain."""
        return self._ask(LeavingQuestion(hosts, gone=False))

    def without(self, hosts: Sequence[str]) -> LeavingPlan:
        """Return where they would go if the hosts died."""
        return self._ask(LeavingQuestion(hosts, gone=True))

    def rebalance(
        self, aim: Aim, max_moves: int, request: Request | None = None, hosts: Sequence[str] = (), policy: str = ""
    ) -> RebalancePlan:
        """Return moves that reach an aim, verified on another copy."""
        question = RebalanceQuestion(aim, max_moves, request, hosts, policy)
        return self._ask(VerifyQuestion(question, self._ask(question)))

    def _ask(self, question: Callable[[CellCopy], T]) -> T:
        found = answer(lambda: copy(self.of, self.settings), question, self.limit_s)
        if isinstance(found, RedschedError):
            raise found
        return found


__all__ = ["MILLI", "Aggregate", "Plans", "ServerGroup", "SharedPool", "archive", "claim", "copy", "host"]
