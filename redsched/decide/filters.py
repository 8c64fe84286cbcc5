"""Which hosts may take a request at all: the filters in their order, each with the reason that it gives.

Cheap and telling ones come first: a host is counted under the first reason that removes it, and "down" says more of a
host than the memory it lacks. What a request names and nothing holds (a class, trait, zone, label) removes every host,
as usual: it is an ordinary "no fit".
"""

from collections.abc import Iterator

import numpy as np

from redsched.cache.arrays import NO_TEXT
from redsched.cache.columns import DISABLED, DRAINING, Columns
from redsched.decide.fit import fits, free
from redsched.decide.rules import Filter, Mask, Rows, Rule
from redsched.model import Request

DOWN = "down"
NOT_ATTESTED = "not-attested"
STATUS_DISABLED = "disabled"
STATUS_DRAINING = "draining"
ZONE = "zone"
HOSTS = "hosts"
EXCLUDE_HOSTS = "exclude_hosts"
REQUIRED = "required"
FORBIDDEN = "forbidden"
ANY_OF = "any_of"
LABELS = "labels"
COUNT = "count"  # given to hosts with room for one place, where all together have too few for the request's count
# An amount is refused under the name of its resource class, a trait or label under `required:HW_CPU_X86_AVX2`.


def liveness(_request: Request) -> Iterator[Rule]:
    """Hosts whose lease has run out take nothing."""
    yield Rule(
        DOWN,
        lambda columns, rows: columns.alive[rows],
        lambda columns, row: "alive" if columns.alive[row] else "no heartbeat within its lease",
    )


def attestation(_request: Request) -> Iterator[Rule]:
    """Hosts that have not said in this epoch of the store what they hold take nothing."""
    yield Rule(
        NOT_ATTESTED,
        lambda columns, rows: columns.attested[rows],
        lambda columns, row: f"attested to epoch {columns.epochs.text(row) or 'none'}, the cell's is {columns.epoch}",
    )


def status(_request: Request) -> Iterator[Rule]:
    """Hosts that an operator has disabled or is draining take nothing new."""
    yield Rule(
        STATUS_DISABLED,
        lambda columns, rows: columns.status[rows] != DISABLED,
        lambda columns, row: "disabled" if columns.status[row] == DISABLED else "not disabled",
    )
    yield Rule(
        STATUS_DRAINING,
        lambda columns, rows: columns.status[rows] != DRAINING,
        lambda columns, row: "draining" if columns.status[row] == DRAINING else "not draining",
    )


def zone(request: Request) -> Iterator[Rule]:
    """Only hosts of one of the named zones."""
    if not request.zones:
        return
    wanted = sorted(request.zones)

    def passes(columns: Columns, rows: Rows) -> Mask:
        codes = columns.zones.codes[rows]
        found = codes == columns.zones.code(wanted[0])
        for other in wanted[1:]:
            found = found | (codes == columns.zones.code(other))
        return found

    yield Rule(
        ZONE, passes, lambda columns, row: f"needs zone {' or '.join(wanted)}, is {columns.zones.text(row) or 'none'}"
    )


def hosts(request: Request) -> Iterator[Rule]:
    """Only the named hosts; none of the excluded ones."""
    if request.hosts:
        yield Rule(
            HOSTS,
            lambda columns, rows: _named(columns, request.hosts, rows),
            lambda columns, row: "is" + _among(columns, request.hosts, row) + "the hosts asked for",
        )
    if request.exclude_hosts:
        yield Rule(
            EXCLUDE_HOSTS,
            lambda columns, rows: ~_named(columns, request.exclude_hosts, rows),
            lambda columns, row: "is" + _among(columns, request.exclude_hosts, row) + "the excluded hosts",
        )


def traits(request: Request) -> Iterator[Rule]:
    """All required traits, no forbidden one, and one of each any_of."""
    for trait in sorted(request.required):
        yield _required(trait)
    for trait in sorted(request.forbidden):
        yield _forbidden(trait)
    for names in sorted({tuple(sorted(names)) for names in request.any_of}):
        yield _any_of(names)


def labels(request: Request) -> Iterator[Rule]:
    """Each named label with exactly the value asked for."""
    for key, value in sorted(request.labels.items()):
        yield _label(key, value)


def resources(request: Request) -> Iterator[Rule]:
    """Room for each amount."""
    for slot, amount in sorted(request.resources.items()):
        yield _amount(slot, amount)


FILTERS: tuple[Filter, ...] = (liveness, attestation, status, zone, hosts, traits, labels, resources)


def rules_of(request: Request, filters: tuple[Filter, ...] = FILTERS) -> tuple[Rule, ...]:
    """Return all rules of a request, in the order in which they are tried."""
    return tuple(rule for one in filters for rule in one(request))


def _named(columns: Columns, names: frozenset[str], rows: Rows) -> Mask:
    if isinstance(rows, int):
        return np.bool_(columns.name(rows) in names)
    mask = np.zeros(columns.size, np.bool_)
    mask[[row for name in names if (row := columns.row(name)) is not None]] = True
    return mask[rows]


def _among(columns: Columns, names: frozenset[str], row: int) -> str:
    return " one of " if columns.name(row) in names else " none of "


def _required(trait: str) -> Rule:
    return Rule(
        f"{REQUIRED}:{trait}",
        lambda columns, rows: columns.traits[trait][rows],
        lambda columns, row: f"needs {trait}, {_has(columns, trait, row)}",
    )


def _forbidden(trait: str) -> Rule:
    return Rule(
        f"{FORBIDDEN}:{trait}",
        lambda columns, rows: ~columns.traits[trait][rows],
        lambda columns, row: f"must not have {trait}, {_has(columns, trait, row)}",
    )


def _has(columns: Columns, trait: str, row: int) -> str:
    return "has it" if columns.traits[trait][row] else "does not have it"


def _any_of(names: tuple[str, ...]) -> Rule:
    def passes(columns: Columns, rows: Rows) -> Mask:
        found = columns.traits[names[0]][rows]
        for name in names[1:]:
            found = found | columns.traits[name][rows]
        return found

    def detail(columns: Columns, row: int) -> str:
        held = [name for name in names if columns.traits[name][row]]
        return f"needs {' or '.join(names)}, has {' and '.join(held) or 'none of them'}"

    return Rule(f"{ANY_OF}:{','.join(names)}", passes, detail)


def _label(key: str, value: str) -> Rule:
    # In the store a label with the value '' and no such label are the same.
    def passes(columns: Columns, rows: Rows) -> Mask:
        texts = columns.labels.get(key)
        if texts is None:
            return np.full(columns.size, not value)[rows]
        return texts.codes[rows] == (texts.code(value) if value else NO_TEXT)

    def detail(columns: Columns, row: int) -> str:
        texts = columns.labels.get(key)
        return f"needs {key}={value}, has {(texts.text(row) if texts else '') or 'no such label'}"

    return Rule(f"{LABELS}:{key}", passes, detail)


def _amount(slot: str, amount: int) -> Rule:
    def passes(columns: Columns, rows: Rows) -> Mask:
        return fits(
            amount,
            columns.capacity[slot][rows],
            columns.claimed[slot][rows],
            columns.external[slot][rows],
            columns.minimum[slot][rows],
            columns.maximum[slot][rows],
            columns.step[slot][rows],
        )

    return Rule(slot, passes, lambda columns, row: amount_detail(columns, slot, amount, row), slot)


def amount_detail(columns: Columns, slot: str, amount: int, row: int) -> str:
    """Say "needs 4096 MEMORY_MB, free 2048", and the units of the slot where they are what forbids the amount."""
    text = f"needs {amount} {slot}, free {slot_free(columns, slot, row)}"
    least, most, step = (f[slot].item(row) for f in (columns.minimum, columns.maximum, columns.step))
    if not least <= amount <= most:
        text += f"; one claim may take {least} to {most}"
    return text if amount % step == 0 else f"{text}; only multiples of {step}"


def slot_free(columns: Columns, slot: str, row: int) -> int:
    """Return what is left of a slot of one host, in the unit of its class."""
    left: int = free(
        columns.capacity[slot].item(row), columns.claimed[slot].item(row), columns.external[slot].item(row)
    )
    return left
