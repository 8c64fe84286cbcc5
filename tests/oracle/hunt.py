"""Look for differences on other cases than the recorded ones, where Nova, Placement and redsched are all installed.

    python -m tests.oracle.hunt SALT ...

prints how many cases of each salt differ, and those that no documented difference explains.
"""

import sys
from collections.abc import Iterator
from tempfile import TemporaryDirectory

from tests.oracle import nova_side, placement_side, redsched_side, redsched_weighers
from tests.oracle.cases.candidates import worlds
from tests.oracle.cases.filters import blocks
from tests.oracle.cases.weighers import fleets
from tests.oracle.differences import candidates as of_candidates, filters as of_filters, weighers as of_weighers
from tests.oracle.record import quiet
from tests.oracle.redsched_candidates import candidates

Found = Iterator[tuple[bool, object]]
"""Cases that differ: whether a documented difference explains them, and what they are."""


def filters(salt: str) -> Found:
    """Yield the verdicts of filters that differ."""
    for block in blocks(salt):
        both = zip(nova_side.filter_verdicts(block), redsched_side.filter_verdicts(block), strict=True)
        for spec, (theirs, ours) in zip(block.specs, both, strict=True):
            for host, *pair in zip(block.hosts, theirs, ours, strict=True):
                if side := of_filters.side_of(*pair):
                    case = block, spec, host, side
                    known = any(of_filters.explains(one, *case) for one in of_filters.DIFFERENCES)
                    yield known, (block.filter, block.conf, block.aggregates, spec, host, side)


def weighers(salt: str) -> Found:
    """Yield the fleets to whose hosts the weighers give other weights."""
    for fleet in fleets(salt):
        theirs, ours = nova_side.weights(fleet), redsched_weighers.weights(fleet)
        if any(abs(one - other) > 1e-6 * max(1.0, abs(one)) for one, other in zip(theirs, ours, strict=True)):
            excepted = of_weighers.DIFFERENCES.get(fleet.weigher)
            yield excepted is not None and excepted[0](fleet), (fleet, theirs, ours)


def allocation_candidates(salt: str, placement: placement_side.Placement) -> Found:
    """Yield the hosts for which redsched's candidate is not among Placement's."""
    for world in worlds(salt):
        both = zip(placement_side.candidates(placement, world), candidates(world), strict=True)
        for query, (theirs, ours) in zip(world.queries, both, strict=True):
            of_hosts = theirs if isinstance(theirs, list) else [[]] * len(ours)
            for host, placements, redscheds in zip(world.hosts, of_hosts, ours, strict=True):
                if case := of_candidates.case_of(placements, redscheds):
                    disagreement = world, query, host, case
                    known = any(of_candidates.explains(name, disagreement) for name in of_candidates.DIFFERENCES)
                    yield known, (query, host, world.shared, case)


def report(what: str, found: Found) -> bool:
    """Print what differs, and return whether all of it is documented."""
    cases = list(found)
    unknown = [case for known, case in cases if not known]
    print(f"{what}: {len(cases)} differ, {len(unknown)} of them undocumented", *unknown, sep="\n  ")
    return not unknown


def main(salts: list[str]) -> int:
    """Hunt with each salt, and return 1 if something differs that is not documented."""
    quiet()
    nova_side.start()
    with TemporaryDirectory() as folder:
        placement = placement_side.Placement(folder)  # only one in a process
        found = [
            report(f"{salt} {what}", hunt)
            for salt in salts
            for what, hunt in (
                ("filters", filters(salt)),
                ("weighers", weighers(salt)),
                ("candidates", allocation_candidates(salt, placement)),
            )
        ]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
