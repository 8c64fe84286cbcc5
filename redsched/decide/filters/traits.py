"""Filters on traits: required, forbidden, any of. Pool assignment handles those of groups and devices."""

from collections.abc import Iterator

from redsched.cache.columns import Columns
from redsched.decide.aggregates import in_any, revision
from redsched.decide.rules import Mask, Rows, Rule
from redsched.decide.text_match import everywhere
from redsched.model import Request

REQUIRED = "required"
FORBIDDEN = "forbidden"
ANY_OF = "any_of"
ROOT_REQUIRED = "root_required"
ROOT_FORBIDDEN = "root_forbidden"


def traits(request: Request) -> Iterator[Rule]:
    """Require all required traits, no forbidden one, and one of each any_of.

    A required trait may be on the host, one of its pools, or a shared pool that the host may use. A forbidden one
    rejects a host only if it is on the host itself; pools with it are merely not used.
    """
    for trait in sorted(request.required):
        yield _required(trait)
    for trait in sorted(request.forbidden):
        yield _without(FORBIDDEN, trait)
    for names in sorted({tuple(sorted(names)) for names in request.any_of}):
        yield _any_of(names)
    for trait in sorted(request.root_required):
        yield _on_root(trait)
    for trait in sorted(request.root_forbidden):
        yield _without(ROOT_FORBIDDEN, trait)


def _required(trait: str) -> Rule:
    return Rule(
        f"{REQUIRED}:{trait}",
        lambda columns, rows: _somewhere(columns, trait, rows),
        lambda columns, row: f"needs {trait}, " + _has(_somewhere(columns, trait, row)),
        depends=revision,
    )


def _on_root(trait: str) -> Rule:
    return Rule(
        f"{ROOT_REQUIRED}:{trait}",
        lambda columns, rows: columns.traits[trait][rows],
        lambda columns, row: f"needs {trait} itself, " + _has(columns.traits[trait][row]),
    )


def _without(reason: str, trait: str) -> Rule:
    return Rule(
        f"{reason}:{trait}",
        lambda columns, rows: ~columns.traits[trait][rows],
        lambda columns, row: f"must not have {trait}, " + _has(columns.traits[trait][row]),
    )


def _has(found: Mask) -> str:
    return "has it" if found else "does not have it"


def _any_of(names: tuple[str, ...]) -> Rule:
    def passes(columns: Columns, rows: Rows) -> Mask:
        found = _somewhere(columns, names[0], rows)
        for name in names[1:]:
            found = found | _somewhere(columns, name, rows)
        return found

    def detail(columns: Columns, row: int) -> str:
        held = [name for name in names if _somewhere(columns, name, row)]
        return f"needs {' or '.join(names)}, has {' and '.join(held) or 'none of them'}"

    return Rule(f"{ANY_OF}:{','.join(names)}", passes, detail, depends=revision)


def _somewhere(columns: Columns, trait: str, rows: Rows) -> Mask:
    found = columns.traits[trait][rows]
    for key in columns.pools_with_trait(trait):
        found = found | columns.traits[key][rows]
    for pool in columns.declared.pools.values():
        if trait in pool.traits:
            found = found | (in_any(columns, pool.aggregates, rows) if pool.aggregates else everywhere(columns, rows))
    return found
