"""The filter on a host's labels: an exact value, or an operator."""

from collections.abc import Iterator

from redsched.cache.arrays import NO_TEXT
from redsched.cache.columns import Columns
from redsched.decide.conditions import Condition, condition
from redsched.decide.rules import Mask, Rows, Rule
from redsched.decide.text_match import everywhere, matching, nowhere
from redsched.model import Request

LABELS = "labels"


def labels(request: Request) -> Iterator[Rule]:
    """Yield a rule for each requested label. Raises InvalidRequest for a malformed operator."""
    for key, text in sorted(request.labels.items()):
        wanted = condition(f"label {key!r}", text)
        yield _plain(key, text) if wanted.plain else _matching(key, wanted)


def _plain(key: str, value: str) -> Rule:
    # The store does not distinguish a label with the value '' from a missing one.
    def passes(columns: Columns, rows: Rows) -> Mask:
        texts = columns.labels.get(key)
        if texts is None:
            return nowhere(columns, rows) if value else everywhere(columns, rows)
        return texts.codes[rows] == (texts.code(value) if value else NO_TEXT)

    return Rule(f"{LABELS}:{key}", passes, lambda columns, row: _detail(columns, row, key, f"={value}"))


def _matching(key: str, wanted: Condition) -> Rule:
    return Rule(
        f"{LABELS}:{key}",
        lambda columns, rows: matching(columns, columns.labels.get(key), rows, wanted.matches),
        lambda columns, row: _detail(columns, row, key, f" {wanted.text}"),
    )


def _detail(columns: Columns, row: int, key: str, wanted: str) -> str:
    texts = columns.labels.get(key)
    return f"needs {key}{wanted}, has {(texts.text(row) if texts else '') or 'no such label'}"
