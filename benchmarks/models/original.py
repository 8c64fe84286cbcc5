"""The case that the shared-state prototype was compared with: 31 requests at once on 3 hosts, 1 and 4 schedulers.

Published on the list openstack-dev in February 2016, beside the prototype's code (review 280047). The figures are
retries in percent of the requests. The sizes of hosts and requests were not published with them: here each host has 10
places for equal requests, so that the last one is refused, and schedulers take the best host, as Nova did by default.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean

from benchmarks.models.figures import Row
from benchmarks.models.work import Ask, HostSpec, Setup

HOSTS, REQUESTS, PLACES = 3, 31, 10
AMOUNTS = {"VCPU": 1, "MEMORY_MB": 2048}
SCHEDULERS = (1, 4)
REPORTED = {("filter", 1): 22.6, ("filter", 4): 51.6, ("shared-state", 1): 0.0, ("shared-state", 4): 6.5}
"""Retries in percent of the requests, by model and number of schedulers."""


def setups(options: Setup, models: Sequence[str], rounds: int) -> Iterator[Setup]:
    """Yield the runs: each round has every model with every number of schedulers. The other options are kept."""
    asks = tuple(Ask(f"r{number:02d}", AMOUNTS) for number in range(REQUESTS))
    capacity = {kind: amount * PLACES for kind, amount in AMOUNTS.items()}
    fleet = tuple(HostSpec(f"h{number}", capacity) for number in range(HOSTS))
    options = replace(options, hosts=fleet, asks=asks, pick_from=1, concurrency=REQUESTS)
    for seed in range(rounds):
        for model in models:
            for schedulers in SCHEDULERS:
                yield replace(options, model=model, schedulers=schedulers, seed=seed)


def retries_percent(rows: Sequence[Row], model: str, schedulers: int) -> list[float]:
    """Return the retries of each round in percent of the requests, lowest first."""
    return sorted(100 * row.retries for row in rows if (row.model, row.schedulers) == (model, schedulers))


def lines(rows: Sequence[Row]) -> Iterator[tuple[str, int, str, str, int]]:
    """Yield model, schedulers, our mean and range, the reported figure, and how many refusals were wrong."""
    for model, schedulers in dict.fromkeys((row.model, row.schedulers) for row in rows):
        found = retries_percent(rows, model, schedulers)
        reported = REPORTED.get((model, schedulers))
        ours = f"{mean(found):.1f} ({found[0]:.1f} to {found[-1]:.1f})"
        wrong = sum(row.wrong_refusals for row in rows if (row.model, row.schedulers) == (model, schedulers))
        yield model, schedulers, ours, "" if reported is None else f"{reported:.1f}", wrong
