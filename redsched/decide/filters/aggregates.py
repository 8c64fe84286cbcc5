"""Filters by which a request selects aggregates, by name or by metadata.

The converse, demands of aggregates on requests, is in `demands`.
"""

from collections.abc import Iterator

from redsched.cache.columns import Columns
from redsched.cache.declared import Declared
from redsched.decide.aggregates import aggregates_of, in_any, listed, metadata, per_revision, revision
from redsched.decide.conditions import Condition, condition
from redsched.decide.rules import Rule
from redsched.model import Request

MEMBER_OF = "member_of"
NOT_MEMBER_OF = "not_member_of"
AGGREGATE_METADATA = "aggregate_metadata"


def member_of(request: Request) -> Iterator[Rule]:
    """Accept hosts that are in one aggregate of each list, and in no forbidden one."""
    for names in sorted({tuple(sorted(names)) for names in request.member_of}):
        yield _in_one(names)
    if request.not_member_of:
        yield _in_none(tuple(sorted(request.not_member_of)))


def _in_one(names: tuple[str, ...]) -> Rule:
    return Rule(
        f"{MEMBER_OF}:{','.join(names)}",
        lambda columns, rows: in_any(columns, names, rows),
        lambda columns, row: f"needs aggregate {' or '.join(names)}, {_is_in(columns, row)}",
    )


def _in_none(names: tuple[str, ...]) -> Rule:
    return Rule(
        NOT_MEMBER_OF,
        lambda columns, rows: ~in_any(columns, names, rows),
        lambda columns, row: f"must not be in aggregate {' or '.join(names)}, {_is_in(columns, row)}",
    )


def _is_in(columns: Columns, row: int) -> str:
    return f"is in {', '.join(aggregates_of(columns, row)) or 'none'}"


def aggregate_metadata(request: Request) -> Iterator[Rule]:
    """Accept hosts whose aggregates' metadata satisfy each condition (Nova's AggregateInstanceExtraSpecsFilter).

    A value is a comma-separated list, of which one item must match, or all items together for <all-in>. Different
    aggregates of the host may satisfy different keys. Raises InvalidRequest for a malformed operator.
    """
    for key, text in sorted(request.aggregate_metadata.items()):
        yield _detail_of(key, condition(f"aggregate_metadata {key!r}", text))


def _detail_of(key: str, wanted: Condition) -> Rule:
    def satisfying(declared: Declared) -> tuple[str, ...]:
        found = ((name, value) for name, one, value in metadata(declared) if one == key)
        return tuple(name for name, value in found if _matches(wanted, value))

    names = per_revision(satisfying)

    def detail(columns: Columns, row: int) -> str:
        mine = aggregates_of(columns, row)
        pairs = [f"{name} {value}" for name, one, value in metadata(columns.declared) if one == key and name in mine]
        return f"needs an aggregate with {key} {wanted.text}, has {', '.join(pairs) or 'none with that key'}"

    return Rule(
        f"{AGGREGATE_METADATA}:{key}",
        lambda columns, rows: in_any(columns, names(columns), rows),
        detail,
        depends=revision,
    )


def _matches(wanted: Condition, value: str) -> bool:
    return any(map(wanted.matches, (value,) if wanted.of_list else listed(value)))
