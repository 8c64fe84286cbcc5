"""An exported cell in a private store, as if all of its hosts were up: for replays, and for plans on an export."""

from collections.abc import Mapping
from dataclasses import replace

from redsched import aio
from redsched.model import ClaimStatus, HostStatus
from redsched.offline.arrivals import LEASE_S
from redsched.operate.backup.archive import Archive
from redsched.operate.backup.import_ import AT_ONCE, import_cell
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.fields import placement_fields
from redsched.store.codec.replies import JournaledClaim
from redsched.store.commands.base import chunks


def private_settings(settings: Settings, url: str, cell: str) -> Settings:
    """Return the settings of a scheduler on the private store at `url`: nothing of the usual store is in them."""
    of_store = {"redis_url": url, "redis_password_file": "", "durability": "none", "cells": (cell,)}
    return settings.model_copy(update={**of_store, "check_s": 0.0, "events_keep_s": 0.0, "enable_new_hosts": True})


async def load(store: CellStore, archive: Archive) -> None:
    """Import an archive into an empty cell, and let each host attest to the claims that it has there.

    Claims stay in the states of the archive. Raises ClaimState, StoreUnavailable.
    """
    hosts = [replace(one, lease_s=LEASE_S) for one in archive.hosts]
    closed = {host: status for host, status in archive.statuses.items() if status is not HostStatus.ENABLED}
    await import_cell(store, replace(archive, hosts=tuple(hosts), statuses=closed))
    held = _held(archive)
    for some in chunks(hosts, AT_ONCE):
        await aio.gather(store.hosts.attest(one.name, "", held=held.get(one.name, ()), lease_s=LEASE_S) for one in some)


def _held(archive: Archive) -> Mapping[str, list[JournaledClaim]]:
    """Return what the journals of the hosts would have, by host: each placement as the archive has it."""
    found = dict[str, list[JournaledClaim]]()
    for claim_id, fields in archive.claims.items():
        for one in placement_fields(fields):
            host, state, token = one["host"], one["state"], one["token"]
            placed = one.get("placed", token)
            root = one.get("root", placed)
            place = {"host": host, "state": state, "token": token, "placed": placed, "root": root}
            entry = JournaledClaim(claim_id, token, placed, root, ClaimStatus(state), place, was_active=True)
            found.setdefault(host, []).append(entry)
    return found
