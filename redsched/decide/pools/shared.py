"""Which shared pools a host may use: those of its aggregates, and those that name no aggregate."""

from redsched.cache.columns import Columns
from redsched.decide.aggregates import in_any
from redsched.decide.pools.demand import PoolDemand
from redsched.decide.rules import Mask, Rows
from redsched.decide.text_match import everywhere


def shared_with(columns: Columns, resource_class: str) -> tuple[str, ...]:
    """Return the shared pools that have a class, sorted by name."""
    pools = columns.declared.pools
    if not pools:
        return ()
    return tuple(sorted(name for name, pool in pools.items() if resource_class in pool.slots))


def may_use(columns: Columns, pool: str, rows: Rows) -> Mask:
    """Return whether hosts may use a shared pool."""
    aggregates = columns.declared.pools[pool].aggregates
    return in_any(columns, aggregates, rows) if aggregates else everywhere(columns, rows)


def usable(columns: Columns, row: int, needs: PoolDemand) -> tuple[str, ...]:
    """Return the shared pools from which a host may take some of the unnumbered resources, sorted by name."""
    pools = columns.declared.pools
    if not pools:
        return ()
    wanted = needs.resources.keys()
    useful = sorted(name for name, pool in pools.items() if not wanted.isdisjoint(pool.slots))
    return tuple(name for name in useful if may_use(columns, name, row))
