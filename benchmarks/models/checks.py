"""What went wrong in a run: by the hosts' own books, and by a count of the answers that ignores the books."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.models.rpc import Message
from benchmarks.models.scheduling import Record
from benchmarks.models.work import HostSpec, Setup

Used = Mapping[str, Mapping[str, int]]


def over_commitments(setup: Setup, records: Sequence[Record], books: Message) -> list[str]:
    """Return every entry that brought a host above its capacity, and every host that the answers bring above it."""
    used = used_by(records)
    return [*books["over"], *(one for spec in setup.hosts for one in _over(spec, used))]


def _over(spec: HostSpec, used: Used) -> Iterable[str]:
    for kind, amount in used.get(spec.name, {}).items():
        if amount > spec.capacity[kind]:
            yield f"{spec.name}: {amount} {kind} of {spec.capacity[kind]} were answered"


def used_by(records: Iterable[Record]) -> Used:
    """Return the placed amounts by host and class."""
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        if record.host:
            used[record.host].update(record.ask.amounts)
    return used


def differences(setup: Setup, records: Sequence[Record], books: Message) -> list[str]:
    """Return where answers and books differ, and which requests arrived at a host twice or were answered twice."""
    answered = {(record.host, record.ask.claim_id) for record in records if record.host}
    held = {(host, claim_id) for host, claims in books["claims"].items() for claim_id in claims}
    found = [f"{host} does not have {claim_id}, which was answered" for host, claim_id in sorted(answered - held)]
    found += [f"{host} has {claim_id}, which was not answered" for host, claim_id in sorted(held - answered)]
    times = Counter(record.ask.claim_id for record in records)
    found += [f"{claim_id} was answered {count} times" for claim_id, count in times.items() if count > 1]
    asked = {ask.claim_id for ask in setup.asks}
    return found + list(books["repeated"]) + [f"{one} was never asked for" for one in sorted(times.keys() - asked)]


def wrong_refusals(setup: Setup, records: Sequence[Record]) -> list[str]:
    """Return the requests that were refused while a host had room.

    Whatever was placed by a request that had begun when the refusal came counts as placed, so that none is called wrong
    because of a claim on its way.
    """
    found = []
    for refused in (record for record in records if not record.host):
        used = used_by(record for record in records if record.began < refused.ended)
        if host := next((spec.name for spec in setup.hosts if _has_room(spec, used, refused.ask.amounts)), ""):
            found.append(f"{refused.ask.claim_id} was refused while {host} had room")
    return found


def _has_room(spec: HostSpec, used: Used, amounts: Mapping[str, int]) -> bool:
    taken = used.get(spec.name, {})
    return all(taken.get(kind, 0) + amount <= spec.capacity[kind] for kind, amount in amounts.items())
