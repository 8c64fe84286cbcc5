"""The events of the claims that complaints name: what schedulers and hosts did with each, in order."""

import asyncio
from collections.abc import Sequence

from redsched.errors import RedschedError
from redsched.model.filters import EventFilter
from redsched.model.records.events import Event
from redsched.scheduler import Scheduler
from tests.faults.suite.callers import traffic
from tests.faults.suite.callers.operator import Operator
from tests.faults.suite.checks.ledger import Ledger
from tests.faults.suite.reporting.reports import at, claim_in

MAX_EVENTS = 200
WITHIN_S = 20.0
_SHOWN = ("host", "state", "end_reason", "reason", "token")


async def with_histories(problems: Sequence[str], ledger: Ledger, operator: Operator) -> list[str]:
    """Return complaints, each with what was said of the first claim that it names and of those placed with it.

    That is what their callers said and were answered, and their events, as far as the store has them.
    """
    claims = {problem: claim_in(problem, ledger) for problem in problems}
    if not any(claims.values()):
        return list(problems)
    try:
        async with asyncio.timeout(WITHIN_S), Scheduler.connect(operator.url, operator.settings) as scheduler:
            return [await _with_history(scheduler, problem, claim, ledger) for problem, claim in claims.items()]
    except (RedschedError, TimeoutError) as error:
        return [f"{problem} [no events: {error}]" for problem in problems]


async def _with_history(scheduler: Scheduler, problem: str, claim: str | None, ledger: Ledger) -> str:
    if claim is None:
        return problem
    together = traffic.placed_with(claim)
    told = [_said_of(one, ledger) for one in together] + [await _events_of(scheduler, one) for one in together]
    return f"{problem} [{'] ['.join(told)}]"


def _said_of(claim: str, ledger: Ledger) -> str:
    return (
        f"said of {claim}: {'; '.join(f'{at(one.at_ms)} {one.who} {one.what}' for one in ledger.said.get(claim, ()))}"
    )


async def _events_of(scheduler: Scheduler, claim: str) -> str:
    newest = await scheduler.events.newest(MAX_EVENTS, EventFilter(claim=claim))
    events = sorted(newest, key=lambda event: event.at_ms)
    return f"events of {claim}: {'; '.join(map(_text, events))}"


def _text(event: Event) -> str:
    facts = " ".join(f"{name}={event.facts[name]}" for name in _SHOWN if event.facts.get(name))
    return f"{at(event.at_ms)} {event.kind} {facts}"
