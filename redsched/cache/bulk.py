"""Adding many hosts to columns at once, for a snapshot: field by field, and not host by host.

Most hosts of a fleet have the same fields. So the hosts of a page are grouped by the names of their fields, each
distinct text of a field is parsed once, and each field of a group is one assignment. The result is that of
`Columns.put` for each host.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import NUMBERS, Columns
from redsched.cache.pool_tree import is_structural, tree_after
from redsched.cache.reserved import is_of_reservation
from redsched.store.codec.wire import mapping_of

T = TypeVar("T")


def put_new(columns: Columns, hosts: Mapping[str, list[str]]) -> None:
    """Add hosts that the columns do not have, each with the flat fields of both of its hashes: field, value ..."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for host, flat in hosts.items():
        alike.setdefault(tuple(flat[::2]), []).append(host)
    for fields, names in alike.items():
        flats = [hosts[name] for name in names]
        if len(set(fields)) == len(fields) and not any(map(is_of_reservation, fields)):
            _put_alike(columns, fields, names, flats)
        else:  # a reserved host, or someone has added a field to the wrong one of the hashes
            for name, flat in zip(names, flats, strict=True):
                columns.put(name, mapping_of(flat))


def _put_alike(columns: Columns, fields: Sequence[str], names: list[str], flats: list[list[str]]) -> None:
    rows = np.array([columns.allocate(name) for name in names], np.intp)
    for number, field in enumerate(fields):
        kind, dot, key = field.partition(".")
        at = 2 * number + 1
        if dot:
            _set_keyed(columns, rows, kind, key, flats, at)
        else:
            _set_single(columns, rows, kind, flats, at)
    _set_trees(columns, rows, fields, flats)
    columns.inventory_changed()
    columns.dirty.mark_all()


def _set_keyed(columns: Columns, rows: NDArray[np.intp], kind: str, key: str, flats: list[list[str]], at: int) -> None:
    if kind in columns.keyed:
        family, parse = columns.keyed[kind]
        family.set_many(key, rows, _parsed(parse, flats, at))
    elif kind == "label":
        columns.label(key).set_new(rows, _texts(flats, at))


def _set_single(columns: Columns, rows: NDArray[np.intp], field: str, flats: list[list[str]], at: int) -> None:
    if field in NUMBERS:
        column, parse = NUMBERS[field]
        getattr(columns, column)[rows] = _parsed(parse, flats, at)
    elif field == "zone":
        columns.zones.set_new(rows, _texts(flats, at))
    elif field == "epoch":
        columns.epochs.set_new(rows, _texts(flats, at))
        columns.attested[rows] = [text != "" and text == columns.epoch for text in _texts(flats, at)]


def _set_trees(columns: Columns, rows: NDArray[np.intp], fields: Sequence[str], flats: list[list[str]]) -> None:
    numbers = [number for number, field in enumerate(fields) if is_structural(field)]
    if not numbers:
        return
    trees: dict[tuple[str, ...], str] = {}
    texts = []
    for flat in flats:
        values = tuple(flat[2 * number + 1] for number in numbers)
        if values not in trees:
            trees[values] = tree_after("", dict(zip((fields[number] for number in numbers), values, strict=True)))
        texts.append(trees[values])
    columns.trees.set_new(rows, texts)


def _texts(flats: list[list[str]], at: int) -> list[str]:
    return [flat[at] for flat in flats]


def _parsed(parse: Callable[[str], T], flats: list[list[str]], at: int) -> list[T]:
    texts = _texts(flats, at)
    values = {text: parse(text) for text in set(texts)}
    return [values[text] for text in texts]
