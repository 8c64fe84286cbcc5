"""The Scheduler whose methods block: its methods, threads, interrupts, forks, and its end."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from redsched import (
    Aggregate,
    ClaimFilter,
    HostReport,
    Inventory,
    NotFound,
    NoValidHost,
    Request,
    StoreUnavailable,
    origin,
)
from redsched.blocking import Scheduler
from redsched.errors import InvalidRequest, OutcomeUnknown, PreconditionFailed
from tests.support.builders.cells import usual_settings
from tests.support.waiting import patience_s, wait_until_sync


@pytest.fixture
def scheduler(clean_store: str) -> Iterator[Scheduler]:
    """Yield a scheduler on a store with a host that has room for 8 claims."""
    with Scheduler.connect(clean_store, usual_settings()) as one:
        one.init()
        one.hosts.report(HostReport("h1", {"VCPU": Inventory(8)}, lease_s=3600))
        yield one


def test_threads_race_for_room_and_none_gets_too_much(scheduler: Scheduler) -> None:
    def claim(number: int) -> str:
        try:
            return scheduler.select(Request({"VCPU": 1}, claim_ids=(f"c{number}",))).selections[0].host
        except NoValidHost:
            return "refused"

    with ThreadPoolExecutor(16) as threads:
        assert Counter(threads.map(claim, range(16))) == {"h1": 8, "refused": 8}
    assert scheduler.hosts.get("h1").slots["VCPU"].free == 0
    assert scheduler.audit().problems == ()


def test_errors_are_those_of_the_library(scheduler: Scheduler) -> None:
    with pytest.raises(NotFound, match="nope"):
        scheduler.claims.get("nope")
    with pytest.raises(StoreUnavailable):
        Scheduler.connect("redis://127.0.0.1:1")
    with pytest.raises(InvalidRequest):
        Scheduler.connect("nonsense://")


def test_who_caused_it_goes_with_the_call(scheduler: Scheduler) -> None:
    token = origin.enter(origin.Origin(actor="nightly"))
    try:
        claim_id = scheduler.select(Request({"VCPU": 1})).selections[0].claim_id
    finally:
        origin.leave(token)
    assert claim_id
    assert scheduler.claims.get(claim_id).actor == "nightly"


def test_a_stream_is_an_iterator(scheduler: Scheduler) -> None:
    changes = scheduler.changes()
    seen = list[str]()
    reader = threading.Thread(target=lambda: seen.append(getattr(next(changes), "kind", "")))
    reader.start()
    while reader.is_alive():  # until the reader has begun to follow, changes are before its beginning
        claim_id = scheduler.select(Request({"VCPU": 1})).selections[0].claim_id
        assert claim_id
        scheduler.claims.release(claim_id)
        reader.join(0.05)
    assert seen[0]
    changes.close()  # type: ignore[attr-defined] # it is a generator


def waits(scheduler: Scheduler) -> bool:
    """Return whether a request waits for room."""
    return scheduler.service._waiting() != []


def test_an_interrupt_ends_the_call_and_not_the_scheduler(scheduler: Scheduler) -> None:
    """The request waits for room that nobody frees."""
    scheduler.select(Request({"VCPU": 8}))

    def interrupt() -> None:
        wait_until_sync(lambda: waits(scheduler))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        scheduler.select(Request({"VCPU": 1}, queue_timeout_s=60))
    assert scheduler.hosts.get("h1").claims == 1


def test_closing_ends_the_calls_of_others(clean_store: str) -> None:
    scheduler = Scheduler.connect(clean_store, usual_settings())
    scheduler.init()
    scheduler.hosts.report(HostReport("h1", {"VCPU": Inventory(1)}, lease_s=3600))
    scheduler.select(Request({"VCPU": 1}))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(scheduler.select, Request({"VCPU": 1}, queue_timeout_s=60))
        wait_until_sync(lambda: waits(scheduler))
        scheduler.close()
        with pytest.raises(OutcomeUnknown, match="closed during the call"):
            waiting.result(patience_s(30))
    scheduler.close()
    with pytest.raises(InvalidRequest, match="is closed"):
        scheduler.status()


def test_a_forked_child_is_told_to_open_its_own(scheduler: Scheduler) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            scheduler.status()
        except InvalidRequest as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        assert "opened by another process" in told.read()
    assert os.waitpid(child, 0)[1] == 0
    assert scheduler.hosts.get("h1").name == "h1"


def test_declared_objects_are_read_and_deleted(scheduler: Scheduler) -> None:
    _, is_new = scheduler.aggregates.put(Aggregate("licensed", {}, frozenset({"h1"})))
    tag = scheduler.aggregates.tag("licensed")
    assert (is_new, scheduler.aggregates.get("licensed").hosts) == (True, ("h1",))
    with pytest.raises(PreconditionFailed):
        scheduler.aggregates.put(Aggregate("licensed"), if_match="0" * 40)
    scheduler.aggregates.put(Aggregate("licensed"), if_match=tag)
    assert [one.name for one in scheduler.aggregates.list()] == ["licensed"]
    scheduler.aggregates.delete("licensed")
    with pytest.raises(NotFound):
        scheduler.aggregates.get("licensed")


def test_a_bulk_call_does_a_page_at_once(scheduler: Scheduler) -> None:
    scheduler.select(Request({"VCPU": 1}, count=3, project="web"))
    page = scheduler.bulk.release(ClaimFilter(project="web"), limit=2)
    assert (len(page.results), page.next is not None) == (2, True)
    assert scheduler.hosts.get("h1").claims == 1
