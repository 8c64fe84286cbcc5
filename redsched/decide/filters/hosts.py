"""Filters on the host itself: alive, attested, enabled, zone, named or excluded."""

from collections.abc import Iterator

import numpy as np

from redsched.cache.columns import DISABLED, DRAINING, Columns
from redsched.decide.rules import Mask, Rows, Rule
from redsched.model import Request

DOWN = "down"
NOT_ATTESTED = "not-attested"
STATUS_DISABLED = "disabled"
STATUS_DRAINING = "draining"
ZONE = "zone"
HOSTS = "hosts"
EXCLUDE_HOSTS = "exclude_hosts"


def liveness(_request: Request) -> Iterator[Rule]:
    """Reject hosts whose lease has expired."""
    yield Rule(
        DOWN,
        lambda columns, rows: columns.alive[rows],
        lambda columns, row: "alive" if columns.alive[row] else "no heartbeat within its lease",
    )


def attestation(_request: Request) -> Iterator[Rule]:
    """Reject hosts that have not attested their claims in this epoch of the store."""
    yield Rule(
        NOT_ATTESTED,
        lambda columns, rows: columns.attested[rows],
        lambda columns, row: f"attested to epoch {columns.epochs.text(row) or 'none'}, the cell's is {columns.epoch}",
    )


def status(_request: Request) -> Iterator[Rule]:
    """Reject hosts that an operator has disabled or is draining."""
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
    """Accept only hosts in one of the named zones."""
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
    """Accept only the named hosts, and no excluded ones."""
    if request.hosts:
        yield Rule(
            HOSTS,
            lambda columns, rows: _named(columns, request.hosts, rows),
            lambda columns, row: "is" + _among(columns, request.hosts, row) + "the requested hosts",
        )
    if request.exclude_hosts:
        yield Rule(
            EXCLUDE_HOSTS,
            lambda columns, rows: ~_named(columns, request.exclude_hosts, rows),
            lambda columns, row: "is" + _among(columns, request.exclude_hosts, row) + "the excluded hosts",
        )


def _named(columns: Columns, names: frozenset[str], rows: Rows) -> Mask:
    if isinstance(rows, int):
        return np.bool_(columns.name(rows) in names)
    if isinstance(rows, np.ndarray) and len(rows) < len(names):
        return np.array([columns.name(row) in names for row in rows.tolist()], np.bool_)
    mask = np.zeros(columns.size, np.bool_)
    mask[[row for name in names if (row := columns.row(name)) is not None]] = True
    return mask[rows]


def _among(columns: Columns, names: frozenset[str], row: int) -> str:
    return " one of " if columns.name(row) in names else " none of "
