"""The filter about a host's labels."""

from collections.abc import Iterator

import numpy as np

from redsched.cache.arrays import NO_TEXT
from redsched.cache.columns import Columns
from redsched.decide.rules import Mask, Rows, Rule
from redsched.model import Request

LABELS = "labels"


def labels(request: Request) -> Iterator[Rule]:
    """Each named label with exactly the value asked for."""
    for key, value in sorted(request.labels.items()):
        yield _label(key, value)


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
