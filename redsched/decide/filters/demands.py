"""Filters by which aggregates select requests: demands in their metadata on the requests for their hosts.

| key                     | a host of such an aggregate accepts only                                              |
|-------------------------|---------------------------------------------------------------------------------------|
| filter_tenant_id...     | requests of the listed projects                                                       |
| trait:<TRAIT>           | required: requests that require the trait; forbidden: those that do not               |
| label:<key>             | required: requests that ask for the label; forbidden: those that do not               |
| property:<key>          | requests with one of the listed values of the property, or without the property       |
| property-required:<key> | requests with one of the listed values of the property                                |
| property-forbidden:<k>  | requests with none of the listed values of the property                               |
| property-confined:<key> | (anything; but requests with one of the listed values go to no other hosts)           |

Sources: Nova's AggregateMultiTenancyIsolation, its request filter isolate_aggregates, its filters
AggregateImagePropertiesIsolation and AggregateTypeAffinityFilter; for property-required and property-confined together
its IsolatedHostsFilter.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from redsched.cache.columns import Columns
from redsched.cache.declared import Declared
from redsched.decide.aggregates import in_any, listed, metadata, per_revision, revision
from redsched.decide.rules import Mask, Rows, Rule
from redsched.decide.text_match import everywhere
from redsched.model import Request
from redsched.model.metadata import (
    FORBIDDEN,
    INSTANCE_TYPE_KEY,
    LABEL_KEY,
    PROJECTS_KEY,
    PROPERTY_CONFINED_KEY,
    PROPERTY_FORBIDDEN_KEY,
    PROPERTY_KEY,
    PROPERTY_REQUIRED_KEY,
    REQUIRED,
    TRAIT_KEY,
)

AGGREGATE_PROJECTS = "aggregate-projects"
AGGREGATE_TRAITS = "aggregate-traits"
AGGREGATE_LABELS = "aggregate-labels"
AGGREGATE_PROPERTIES = "aggregate-properties"

_PROPERTY_KEYS = frozenset((PROPERTY_KEY, PROPERTY_REQUIRED_KEY, PROPERTY_FORBIDDEN_KEY, PROPERTY_CONFINED_KEY))

Lists = dict[str, frozenset[str]]
"""By aggregate: the values it lists under a key."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A demand on requests for hosts in one of the aggregates `of` (None: for all hosts).

    Such a host takes the request only if it is also in one of `admit`. `says` is the text of a failure, placed after
    the names of the host's aggregates among `of`.
    """

    of: tuple[str, ...] | None
    admit: tuple[str, ...]
    says: str

    def met(self, columns: Columns, rows: Rows) -> Mask:
        """Return whether each row's host may take the request as far as this demand is concerned."""
        admitted = in_any(columns, self.admit, rows)
        return admitted if self.of is None else admitted | ~in_any(columns, self.of, rows)

    def failure_text(self, columns: Columns, row: int) -> str:
        """Return the failure of one host as text."""
        if self.of is None:
            return self.says
        names = (name for name in self.of if columns.aggregates[name][row])
        return f"aggregate {' and '.join(names)} {self.says}"


def keeps_projects(declared: Declared) -> bool:
    """Return whether any aggregate is reserved for certain projects."""
    return any(key.startswith(PROJECTS_KEY) for _, key, _ in metadata(declared))


def demands(request: Request) -> Iterator[Rule]:
    """Yield the rules that the metadata of aggregates impose on a request."""
    yield _rule(AGGREGATE_PROJECTS, lambda declared: _of_projects(request, declared))
    yield _rule(AGGREGATE_TRAITS, lambda declared: _of_words(TRAIT_KEY, "require", _required(request), declared))
    yield _rule(AGGREGATE_LABELS, lambda declared: _of_words(LABEL_KEY, "request label", _asked(request), declared))
    yield _rule(AGGREGATE_PROPERTIES, lambda declared: _of_properties(request, declared))


def _rule(reason: str, read: Callable[[Declared], Iterator[Demand]]) -> Rule:
    compiled = per_revision(lambda declared: tuple(read(declared)))

    def passes(columns: Columns, rows: Rows) -> Mask:
        met = everywhere(columns, rows)
        for demand in compiled(columns):
            met = met & demand.met(columns, rows)
        return met

    def detail(columns: Columns, row: int) -> str:
        unmet = [demand.failure_text(columns, row) for demand in compiled(columns) if not demand.met(columns, row)]
        return "; ".join(unmet) or "no aggregate is against it"

    return Rule(reason, passes, detail, depends=revision, idle=lambda columns: not compiled(columns))


def _of_projects(request: Request, declared: Declared) -> Iterator[Demand]:
    lists: Lists = {}
    for name, key, value in metadata(declared):
        if key.startswith(PROJECTS_KEY):
            lists[name] = lists.get(name, frozenset()) | listed(value)
    mine = f"project {request.project}" if request.project else "no project"
    says = f"is only for the projects of its {PROJECTS_KEY}, this is for {mine}"
    yield from _only_for(lists, _listing(lists, request.project), says)


def _only_for(lists: Lists, listing: tuple[str, ...], says: str) -> Iterator[Demand]:
    # As in Nova, the lists of all aggregates of a host are merged: it is enough if one of them has the value.
    if lists:
        yield Demand(tuple(lists), listing, says)


def _listing(lists: Lists, value: str | None) -> tuple[str, ...]:
    """Return the aggregates that list a value."""
    return tuple(name for name, values in lists.items() if value in values)


def _required(request: Request) -> frozenset[str]:
    parts = (*(group.required for group in request.groups), *(devices.required for devices in request.pci))
    return request.required.union(request.root_required, *parts)


def _asked(request: Request) -> frozenset[str]:
    # A requested label of '' means that the host must not have it.
    return frozenset(key for key, text in request.labels.items() if text)


def _of_words(prefix: str, verb: str, asked: frozenset[str], declared: Declared) -> Iterator[Demand]:
    for name, key, value in metadata(declared):
        if not key.startswith(prefix):
            continue
        what = key.removeprefix(prefix)
        if value == REQUIRED and what not in asked:
            yield Demand((name,), (), f"is only for requests that {verb} {what}")
        elif value == FORBIDDEN and what in asked:
            yield Demand((name,), (), f"is not for requests that {verb} {what}")
        elif value not in (REQUIRED, FORBIDDEN):
            # An invalid value, from a manual edit: block all requests, because it is unknown which ones are allowed.
            yield Demand((name,), (), f"has {key}={value}, which is neither {REQUIRED} nor {FORBIDDEN}")


def _of_properties(request: Request, declared: Declared) -> Iterator[Demand]:
    for (kind, what), lists in sorted(_property_lists(declared).items()):
        have = request.properties.get(what)
        listing = _listing(lists, have)
        if kind == PROPERTY_CONFINED_KEY and listing:
            yield Demand(None, listing, f"property {what}={have} goes only to aggregate {' or '.join(listing)}")
        if kind == PROPERTY_FORBIDDEN_KEY and listing:
            yield Demand(listing, (), f"is not for property {what}={have}")
        if kind == PROPERTY_REQUIRED_KEY or (kind == PROPERTY_KEY and have is not None):
            mine = "no such property" if have is None else have
            yield from _only_for(lists, listing, f"is only for the values of its {kind}{what}, this has {mine}")


def _property_lists(declared: Declared) -> dict[tuple[str, str], Lists]:
    found: dict[tuple[str, str], Lists] = {}
    for name, key, value in metadata(declared):
        kind, _, what = (PROPERTY_REQUIRED_KEY + key if key == INSTANCE_TYPE_KEY else key).partition(":")
        if f"{kind}:" in _PROPERTY_KEYS:
            lists = found.setdefault((f"{kind}:", what), {})
            lists[name] = lists.get(name, frozenset()) | listed(value)
    return found
