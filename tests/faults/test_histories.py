"""The problems that the fault suite reports include what was said of the claim that they name, and its events."""

from collections import Counter

from redsched.model import Request
from redsched.operate.observe.recorder import Recorder
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.faults.suite.callers.operator import Operator
from tests.faults.suite.checks.histories import with_histories
from tests.faults.suite.checks.ledger import Answer, Ledger
from tests.scheduler.conftest import report_all, report_of

SETTINGS = Settings(check_s=0)


async def test_a_complaint_tells_the_events_of_the_claim_that_it_names(clean_store: str) -> None:
    async with Scheduler.connect(clean_store, SETTINGS) as scheduler:
        await scheduler.init()
        await report_all(scheduler, [report_of("h1", VCPU=8)])
        await scheduler.select(Request({"VCPU": 1}, claim_ids=("mine",)))
        await scheduler.claims.release("mine")
        await Recorder(scheduler.cells.named("c1").store, SETTINGS).record()
    ledger = Ledger()
    ledger.hear("s1", "moving", {"id": "mine"})
    ledger.hear("s1", "trouble", {"id": "mine", "error": "OutcomeUnknown"})
    ledger.last["mine"] = Answer("s1", "placed", 0)
    operator = Operator(clean_store, SETTINGS, ledger, dict)
    about, other = await with_histories(["claim mine is lost", "the watcher is blind"], ledger, operator)
    assert other == "the watcher is blind"
    said, _, events = about.partition("] [events of mine: ")
    assert said.startswith("claim mine is lost [said of mine: ")
    assert [told.split(maxsplit=1)[1] for told in said.partition(" mine: ")[2].split("; ")] == [
        "s1 moving",
        "s1 trouble OutcomeUnknown",
    ]
    kinds = Counter(event.split()[1] for event in events.removesuffix("]").split("; "))
    assert kinds == {"claimed": 1, "released": 1}
