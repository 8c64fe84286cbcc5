"""The filter on claim counts: how many claims a host may have, and how many of them may be starting.

The lowest limit among the host's aggregates applies, or the setting if none has one (as in Nova's
AggregateNumInstancesFilter and AggregateIoOpsFilter); 0 means unlimited.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.cache.declared import Declared
from redsched.decide.aggregates import metadata, per_revision, revision
from redsched.decide.rules import Filter, Mask, Rows, Rule
from redsched.model import HostLimit, Request
from redsched.model.metadata import CLAIMS_KEYS, STARTING_KEYS
from redsched.model.validation import MAX_AMOUNT, parse_int
from redsched.settings import Settings

MAX_CLAIMS = "max_claims_per_host"
MAX_STARTING = "max_starting_per_host"
NO_LIMIT = MAX_AMOUNT

Named = tuple[tuple[str, int], ...]
"""The aggregates that have a limit, each with its value."""


def limits_filter(settings: Settings) -> Filter:
    """Make the filter for these settings: accept hosts whose limits allow one more claim."""
    most_claims, most_starting = (
        _or_no_limit(settings.max_claims_per_host),
        _or_no_limit(settings.max_starting_per_host),
    )
    claims, starting = per_revision(_claims), per_revision(_starting)

    rules = (
        _rule(MAX_CLAIMS, "claims", lambda columns: columns.claims, claims, most_claims),
        _rule(MAX_STARTING, "claims that are starting", lambda columns: columns.starting, starting, most_starting),
    )

    def limits(_request: Request) -> Iterator[Rule]:
        yield from rules

    return limits


def has_limits(declared: Declared, settings: Settings) -> bool:
    """Return whether the settings or any aggregate limit the claims on a host."""
    by_settings = settings.max_claims_per_host or settings.max_starting_per_host
    return bool(by_settings or _claims(declared) or _starting(declared))


def host_limits(columns: Columns, row: int, settings: Settings) -> HostLimit:
    """Return the limits of one host, for the claim script to enforce."""
    declared = columns.declared
    claims = _limit_of(columns, row, _claims(declared), _or_no_limit(settings.max_claims_per_host))
    starting = _limit_of(columns, row, _starting(declared), _or_no_limit(settings.max_starting_per_host))
    return HostLimit(
        claims=None if claims == NO_LIMIT else claims,
        starting=None if starting == NO_LIMIT else starting,
    )


def _rule(
    reason: str,
    what: str,
    count: Callable[[Columns], NDArray[np.int64]],
    named: Callable[[Columns], Named],
    most: int,
) -> Rule:
    def passes(columns: Columns, rows: Rows) -> Mask:
        if isinstance(rows, int):
            return count(columns)[rows] < _limit_of(columns, rows, named(columns), most)
        return count(columns)[rows] < _limits(columns, rows, named(columns), most)

    def detail(columns: Columns, row: int) -> str:
        limit = _limit_of(columns, row, named(columns), most)
        return f"has {count(columns)[row]} {what}, " + (f"may have {limit}" if limit != NO_LIMIT else "no limit")

    def idle(columns: Columns) -> bool:
        return most == NO_LIMIT and not named(columns)

    return Rule(reason, passes, detail, depends=revision, room=True, idle=idle)


def _claims(declared: Declared) -> Named:
    return tuple((name, _read(value)) for name, key, value in metadata(declared) if key in CLAIMS_KEYS)


def _starting(declared: Declared) -> Named:
    return tuple((name, _read(value)) for name, key, value in metadata(declared) if key in STARTING_KEYS)


def _read(value: str) -> int:
    # An invalid value (a manual edit) allows nothing.
    number = parse_int(value, -1)
    return 0 if number < 0 else _or_no_limit(number)


def _or_no_limit(number: int) -> int:
    return number or NO_LIMIT


def _limit_of(columns: Columns, row: int, named: Named, most: int) -> int:
    return min((limit for name, limit in named if columns.aggregates[name][row]), default=most)


def _limits(columns: Columns, rows: Rows, named: Named, most: int) -> Mask:
    """Return the limits of rows: int64 of their shape, or one number for all of them."""
    if not named:
        return most
    lowest = np.full(columns.size, NO_LIMIT + 1, np.int64)[rows]
    for name, limit in named:
        lowest = np.where(columns.aggregates[name][rows], np.minimum(lowest, limit), lowest)
    return np.where(lowest > NO_LIMIT, most, lowest)
