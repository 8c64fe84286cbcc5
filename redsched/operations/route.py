"""The route of an operation: its path, who may use it, what it reads, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from redsched.auth.policy import RoutePolicy
from redsched.errors import (
    ClaimState,
    NotFound,
    NoValidHost,
    OutcomeUnknown,
    QuotaExceeded,
    RedschedError,
    Settling,
    StaleToken,
)

Errors = tuple[type[RedschedError], ...]

OF_VERB: Errors = (NotFound, ClaimState, StaleToken, Settling, OutcomeUnknown)
"""The errors of the verbs of a claim."""
OF_PLACING: Errors = (*OF_VERB, NoValidHost, QuotaExceeded)
"""The errors of those that find a place for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route of the REST API.

    `id` is that of the OpenAPI document. `answers`: the records, or pages of records, that it answers with, by status;
    None for no body. `errors`: the problems besides those that every route has. `body`, `query`: the names of the
    models that read these (`redsched.requests`), which only the API loads.
    """

    id: str
    method: str
    path: str
    tag: str
    summary: str
    policy: RoutePolicy
    answers: Mapping[int, Any]
    errors: Errors = ()
    body: str = ""
    body_as: str = ""
    """The argument of the operation that is the whole body; by default, each field of the body is one."""
    body_is_optional: bool = False
    body_may_be_large: bool = False
    """Whether the body may have the size of a declaration; by default it has that of a request."""
    query: str = ""
    in_query: tuple[str, ...] = ()
    """The arguments in the query of a route that has a body too. Without a body, all are in the query."""
    examples: Mapping[str, Any] = field(default_factory=dict)
    """Named examples of the body; by default the document shows that of its model."""
    notes: str = ""
    """What only callers of REST need to know, such as what a status means: it follows the text of the operation."""
    has_etag: bool = False
    """Whether the response has the ETag of an object."""
    conditions: tuple[str, ...] = ()
    """The conditional headers that it honours: If-Match, If-None-Match."""
    status: int = 0
    """The status that the document has first; 0: the first of `answers`."""
    needs_store: bool = True
    """Whether it fails without the store."""
    is_repeatable: bool = False
    """Whether a POST may be sent twice: the second has the first outcome, or writes nothing."""

    @property
    def key(self) -> tuple[str, str]:
        """Its method and path."""
        return self.method, self.path
