"""How long it takes to write a claim and a page of 100 as JSON, as the API does, and to read them as the client does.

    python -m benchmarks.records [--rounds 100] [--json]

Processor time in microseconds, as the median of the rounds. Nothing else is part of it: no store, no HTTP.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping
from statistics import median

from redsched.api.responses import answered, listed
from redsched.model import Claim, ClaimStatus
from redsched.model.records.pages import CLAIMS, Page
from redsched.operations.operation import read_record

PAGE = 100
CALLS = 10
"""Calls of a round, so that the clock's own time does not matter."""


def claim(number: int) -> Claim:
    """Return a claim as most are: active, with three classes and a lease."""
    return Claim(
        claim_id=f"claim-{number:05}",
        cell="default",
        host=f"host-{number % 40:05}",
        state=ClaimStatus.ACTIVE,
        token=f"{number}-1764400000000",
        slots={"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 40},
        project="web",
        consumer=f"vm-{number}",
        request_id=f"request-{number:05}",
        claimed_at_ms=1_764_400_000_000,
        expires_at_ms=1_764_400_060_000,
    )


def works() -> Mapping[str, Callable[[], object]]:
    """Return what is measured: for each row, a call."""
    one, page = claim(0), Page(tuple(map(claim, range(PAGE))), "claim-00099")
    text, texts = bytes(answered(one).body), bytes(listed(CLAIMS, page).body)
    return {
        "write a claim": lambda: answered(one),
        f"write a page of {PAGE}": lambda: listed(CLAIMS, page),
        "read a claim": lambda: read_record(Claim, text),
        f"read a page of {PAGE}": lambda: read_record(CLAIMS, texts),
    }


def us(call: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.thread_time_ns()
    for _ in range(CALLS):
        call()
    return (time.thread_time_ns() - start) / 1000 / CALLS


def measure(rounds: int) -> dict[str, float]:
    """Return the processor time of each row in us."""
    return {name: median(us(call) for _ in range(rounds)) for name, call in works().items()}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100, help=f"rounds of {CALLS} calls each")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    results = measure(given.rounds)
    if given.json:
        print(json.dumps(results))
        return
    for name, value in results.items():
        print(f"{name:<22} {value:>8.1f} us")


if __name__ == "__main__":
    main()
