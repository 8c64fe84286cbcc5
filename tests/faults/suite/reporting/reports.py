"""Errors as text for people: what was answered to whom and when, and what was found instead."""

import re
from datetime import datetime

from tests.faults.suite.checks.ledger import Ledger
from tests.faults.suite.checks.view import together
from tests.faults.suite.checks.watcher import Watcher

_WORD = re.compile(r"[\w.-]+")


def at(ms: int | None) -> str:
    """Return a time of day of Unix ms, by this machine's clock."""
    return "never" if ms is None else datetime.fromtimestamp(ms / 1000).strftime("%H:%M:%S.%f")[:-3]


def claim_in(problem: str, ledger: Ledger) -> str | None:
    """Return the first claim that a problem names and a caller knows, or None."""
    return next((word for word in _WORD.findall(problem) if word in ledger.last), None)


def explained(problem: str, ledger: Ledger, watcher: Watcher) -> str:
    """Return a problem with the last answer about the first claim that it names, unless it contains that already."""
    claim_id = claim_in(problem, ledger)
    if " was answered " in problem:
        return problem
    if claim_id is None:
        known = next((word for word in _WORD.findall(problem) if word in together(watcher.now).claims), None)
        return f"{problem} [now {whereabouts(known, watcher)}]" if known else problem
    answer = ledger.last[claim_id]
    said = f"{answer.who} was answered '{answer.what}' at {at(answer.at_ms)}"
    return f"{problem} [{claim_id}: {said}; now {whereabouts(claim_id, watcher)}]"


def whereabouts(claim_id: str, watcher: Watcher) -> str:
    """Return the state of a claim in the store."""
    claims = together(watcher.now)
    if (claim := claims.claims.get(claim_id)) is not None:
        return f"{claim.get('state')} on {claim.get('host')}"
    gone = watcher.gone.get(claim_id)
    if gone is None:
        return f"ended ({claims.ended[claim_id]})" if claim_id in claims.ended else "not there"
    seen = f"seen {gone.last.get('state')} on {gone.last.get('host')} last at {at(gone.seen_ms)}"
    lease = f" with a lease until {at(gone.expires_ms)}" if gone.expires_ms else ""
    return f"{seen}{lease}, gone by {at(gone.gone_ms)} ({gone.end_reason})"
