"""Filters about traits: required, forbidden, any of."""

from collections.abc import Iterator

from redsched.cache.columns import Columns
from redsched.decide.rules import Mask, Rows, Rule
from redsched.model import Request

REQUIRED = "required"
FORBIDDEN = "forbidden"
ANY_OF = "any_of"


def traits(request: Request) -> Iterator[Rule]:
    """All required traits, no forbidden one, and one of each any_of."""
    for trait in sorted(request.required):
        yield _required(trait)
    for trait in sorted(request.forbidden):
        yield _forbidden(trait)
    for names in sorted({tuple(sorted(names)) for names in request.any_of}):
        yield _any_of(names)


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
