"""The rows to search for a kind of place: as few of the best as nearly always suffice, or all."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.gang.domains import Open
from redsched.decide.gang.kinds import Kind
from redsched.decide.pick import best_rows
from redsched.decide.scoring import score
from redsched.model import GroupPolicy

Rows = NDArray[np.intp]


def first_rows(columns: Columns, kind: Kind, most: int) -> Open:
    """Return the `most` best rows that pass every rule now.

    Each place takes at most one row from another, so with as many rows as places, one is left if any exists. With zones
    and the like, or with pools, this does not hold: use `all_rows` then.
    """
    profile = kind.profile
    if profile.ranking.is_cached:
        return Open(
            kind, np.array([row for _, _, row in profile.ranking.best(most)], np.intp), profile.ranking.scores, most
        )
    rows = profile.fitting.open_rows()
    scores = _scores(columns, kind, rows)
    return Open(kind, best_rows(rows, scores, columns.order, most), scores, most)


def all_rows(columns: Columns, kind: Kind, most: int | None) -> Open:
    """Return all rows that pass the rules about the row alone. The other rules may change during the search."""
    profile = kind.profile
    rows = np.flatnonzero(profile.fitting.mask)
    return Open(kind, rows, profile.ranking.scores if profile.ranking.is_cached else _scores(columns, kind, rows), most)


def best_of_each(columns: Columns, found: Open) -> Rows:
    """Return the `most` best rows of each domain that matters to the kind; all rows if `most` is None."""
    if found.most is None or len(found.rows) <= found.most:
        return found.rows
    matter = domains_that_matter(columns, found.kind)
    if not matter:
        return best_rows(found.rows, found.scores, columns.order, found.most)
    rows = best_rows(found.rows, found.scores, columns.order, len(found.rows))
    return rows[_rank_in_domain(_combined(columns, matter, rows)) < found.most]


def topologies(columns: Columns, kind: Kind) -> tuple[str, ...]:
    """Return the topologies by which hard rules count the places of a kind."""
    state = columns.declared.groups.get(kind.request.server_group) if kind.request.server_group else None
    by = [spread.by for spread in kind.request.spread if spread.hard]
    if state is not None and state.group.policy in (GroupPolicy.AFFINITY, GroupPolicy.ANTI_AFFINITY):
        by.append(state.group.by)
    return tuple(sorted(set(by)))


def domains_that_matter(columns: Columns, kind: Kind) -> tuple[str, ...]:
    """Return what `topologies` returns, without hosts, of which each place uses up at most one."""
    return tuple(by for by in topologies(columns, kind) if by != "host")


def _scores(columns: Columns, kind: Kind, rows: Rows) -> NDArray[np.float64]:
    scores = np.zeros(columns.size)
    if len(rows):
        scores[rows] = score(columns, kind.request, kind.profile.ranking.weighing, rows)
    return scores


def _combined(columns: Columns, matter: Sequence[str], rows: Rows) -> NDArray[np.int64]:
    """Return a number for each row, equal for rows whose domains are all the same."""
    found = np.zeros(len(rows), np.int64)
    for by in matter:
        texts = columns.texts(by)
        if texts is not None:
            codes = texts.codes[rows].astype(np.int64)
            found = np.unique(found * (len(texts.by_code) + 1) + codes + 1, return_inverse=True)[1]
    return found


def _rank_in_domain(domains: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each element, how many earlier ones have the same number."""
    order = np.argsort(domains, kind="stable")
    ordered = domains[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ranks = np.empty(len(domains), np.int64)
    ranks[order] = np.arange(len(domains)) - np.repeat(starts, np.diff(np.append(starts, len(domains))))
    return ranks
