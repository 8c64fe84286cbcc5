"""Exported cells for tests of plans, built without a store."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from redsched.decide.plugins.registry import plugin_registry
from redsched.model import Aggregate, HostReport, Inventory, Pool, Request, ServerGroup, SharedPool
from redsched.scheduler.backup.archive import FORMAT, Archive, Head
from redsched.scheduler.plans.archived import copy_of
from redsched.scheduler.plans.cell_copy import CellCopy
from redsched.scheduler.plans.offline import ArchivePlans
from redsched.settings import Settings

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
    """Return a new copy of an exported cell."""
    return copy_of(of, settings, plugin_registry(settings))


def plans(of: Archive, settings: Settings = SETTINGS) -> ArchivePlans:
    """Return plans on an exported cell that may take a minute."""
    return ArchivePlans(of, settings, 60.0)


__all__ = ["MILLI", "Aggregate", "ServerGroup", "SharedPool", "archive", "claim", "copy", "host", "plans"]
