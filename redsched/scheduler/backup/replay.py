"""Replay an exported cell: request its claims again, in their order, on its hosts in another store."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from redsched.errors import Conflict, NotFound, NoValidHost
from redsched.model import MAX_COUNT, Hints, Request
from redsched.model.validation import parse_int, split_slot
from redsched.scheduler.backup.archive import Archive
from redsched.scheduler.backup.import_ import import_declared
from redsched.scheduler.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.codec.fields import AMOUNT
from redsched.store.store import Store

LEASE_S = 3600
MAX_CLAIMS = 100_000


@dataclass(frozen=True, slots=True)
class Replayed:
    """The numbers of places claimed and refused, and of hosts used.

    `guessed` counts the places whose request is unknown, so that it was derived from the amounts that they hold.
    """

    policy: str
    placed: int
    refused: int
    hosts: int
    guessed: int


async def replay(url: str, archive: Archive, settings: Settings, policy: str = "") -> Replayed:
    """Place the claims of an archive in the empty store at `url`; `policy` replaces the policies of their requests.

    Among equal hosts the first is always taken, so that replays are repeatable. Raises StoreUnavailable.
    """
    overrides = {"cells": (archive.head.cell,), "pick_from": 1, "check_s": 0.0, "events_keep_s": 0.0, "redis_url": url}
    settings = settings.model_copy(update=overrides)
    await _report_hosts(url, archive, settings)
    placed = refused = guessed = 0
    used: set[str] = set()
    async with Scheduler.connect(url, settings) as scheduler:
        for request, known in _requests(archive, policy):
            guessed += 0 if known else request.places
            try:
                found = (await scheduler.select(request)).selections
            except (NoValidHost, Conflict, NotFound):
                refused += request.places
                continue
            placed += len(found)
            refused += request.places - len(found)
            used.update(one.host for one in found)
    return Replayed(policy, placed, refused, len(used), guessed)


async def _report_hosts(url: str, archive: Archive, settings: Settings) -> None:
    async with Store.connect(url, settings) as store:
        cell = store.cell(archive.head.cell)
        await cell.init()
        for report in archive.hosts:
            reply = await cell.hosts.report(replace(report, lease_s=LEASE_S))
            await cell.hosts.attest(report.name, reply.epoch)
        await import_declared(cell, archive)


def _requests(archive: Archive, policy: str) -> Iterator[tuple[Request, bool]]:
    """Yield (request, True) for each original call; if the request is unknown, (guess, False) for each claim."""
    calls: dict[tuple[int, str], list[tuple[str, Mapping[str, str]]]] = {}
    for claim_id, values in archive.claims.items():
        if values["state"] == "ended":
            continue
        at_ms = parse_int(values.get("claimed_at_ms", ""), 0)
        calls.setdefault((at_ms, values.get("digest") or claim_id), []).append((claim_id, values))
    for (_, digest), claims in sorted(calls.items()):
        text = archive.requests.get(digest)
        if text:
            yield _request_of(Request.from_canonical(text), len(claims), policy), True
        else:
            for _, values in claims:
                yield _guessed_request(values, policy), False


def _request_of(request: Request, places: int, policy: str) -> Request:
    """Return the request for the number of places exported, without its hints, which name claims of another store."""
    if not request.members:
        request = replace(request, count=min(places, MAX_COUNT))
    if policy:
        request = replace(request, policy=policy, weights={})
    return replace(request, hints=Hints(), lease_s=LEASE_S)


def _guessed_request(values: Mapping[str, str], policy: str) -> Request:
    resources: dict[str, int] = {}
    for name, text in values.items():
        if name.startswith(AMOUNT):
            resource_class = split_slot(name[len(AMOUNT) :])[1]
            resources[resource_class] = resources.get(resource_class, 0) + parse_int(text, 0)
    asked = {name: amount for name, amount in resources.items() if amount}
    return Request(asked, project=values.get("project", ""), lease_s=LEASE_S, policy=policy)
