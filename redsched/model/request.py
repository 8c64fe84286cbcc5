"""What is asked for: resources and the pools they come from, where, with whom, how much, weighed how."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from redsched.errors import InvalidRequest
from redsched.model.claims import Amounts, OnExit
from redsched.model.constraints import Group, Hints, Numa, PciDevices, Relation, Spread
from redsched.model.json_codec import Fields, Worded, as_text, from_text
from redsched.model.record import record
from redsched.model.request_validation import check_request
from redsched.model.validation import check_name

_NO_HINTS = Hints()


@dataclass(frozen=True, slots=True)
class GangMember:
    """One kind of member of a gang: its name, and what each of its `count` places asks for."""

    name: str
    request: "Request"

    def __post_init__(self) -> None:
        check_name("member", self.name)
        if self.request.members:
            raise InvalidRequest(f"member {self.name!r} has members of its own: list them all beside each other")
        if self.request.project:
            raise InvalidRequest(f"member {self.name!r} names a project: that of the whole call stands beside members")

    @property
    def count(self) -> int:
        """Places of this kind."""
        return self.request.count


@record
class Request(Worded):
    """What is asked for. Every place of `count` takes all of it from one host; all places or none.

    `resources` may each come from another pool of the host (the root first), each of `groups` from one pool. With
    `members` (a gang) they say what is asked for, and only what concerns the whole call stands beside them.
    """

    resources: Amounts = field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    group_policy: Literal["none", "isolate"] = "none"
    same_subtree: tuple[frozenset[str], ...] = ()
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    any_of: tuple[frozenset[str], ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    exclude_hosts: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    aggregate_metadata: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    """What is said of the work and not of a host (an image's os_type, a flavour's name), for aggregates to match."""
    query: tuple[Any, ...] = ()
    """Nova's JsonFilter: nested tuples of texts and numbers; () for none."""
    server_group: str = ""
    spread: tuple[Spread, ...] = ()
    numa: Numa | None = None
    pci: tuple[PciDevices, ...] = ()
    hints: Hints = _NO_HINTS
    policy: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)
    count: int = 1
    mode: Literal["all", "incremental"] = "all"
    members: tuple[GangMember, ...] = ()
    relations: tuple[Relation, ...] = ()
    alternates: int = 0
    project: str = ""
    consumer: str = ""
    claim_ids: tuple[str, ...] = ()
    lease_s: int = 120
    until: Literal["claimed", "active"] = "claimed"
    """When the answer is given: once the claims are made, or once their hosts have confirmed that the work runs."""
    queue_timeout_s: int = 0
    """How long to wait for room where nothing fits."""
    confirm_timeout_s: int = 0
    """With until active, how long to wait for hosts to confirm, over all attempts. 0: `lease_s` for each of them."""
    claim: bool = True
    on_exit: OnExit = OnExit.RELEASE
    """What becomes of each claim when the work that its hook named (pids, a cgroup) ends by itself."""
    max_attempts: int = 3
    """How often a claim is placed before it has failed, since it was active last. A gang has one attempt."""

    def __post_init__(self) -> None:
        if self.members:
            self._check_beside_members()
        check_request(self)

    @property
    def places(self) -> int:
        """How many places are asked for, over all members."""
        return sum(one.count for one in self.members) if self.members else self.count

    def _check_beside_members(self) -> None:
        for name in _PLACE_FIELDS:
            if getattr(self, name) != _DEFAULTS[name]:
                raise InvalidRequest(f"{name} stands beside members: give it to each member that it is meant for")

    def shape(self) -> str:
        """Return canonical JSON of all that a decision depends on: equal shapes have equal masks and scores."""
        texts = _shared_texts(self)
        return texts.shape if texts else as_text(_SHAPE.of(self))

    def canonical(self) -> str:
        """Return canonical JSON of what is requested and for whom, without the ids and how the call is answered."""
        texts = _shared_texts(self)
        return texts.canonical if texts else as_text(self.words())

    def words(self) -> dict[str, Any]:
        """Return what `canonical` writes, as JSON has it."""
        return _DIGEST.of(self)

    def digest(self) -> str:
        """Return 32 hex digits over the canonical text: what an id, sent again, must match."""
        texts = _shared_texts(self)
        return texts.digest if texts else _digest_of(self.canonical())

    @classmethod
    def from_canonical(cls, text: str) -> "Request":
        """The request of a canonical text, its digest the same. Raises InvalidRequest for what is none."""
        return from_text(text, cls, {"Request": cls})


# Of the call and not of a place: they change neither which hosts fit nor how good those are. The project may, where
# aggregates are kept for projects: who remembers shapes has to look.
_OF_THE_ANSWER = frozenset(("claim_ids", "claim", "alternates", "until", "queue_timeout_s", "confirm_timeout_s"))
_CALL_FIELDS = _OF_THE_ANSWER | {
    *("count", "mode", "members", "relations", "project", "consumer", "lease_s", "on_exit", "max_attempts")
}
_ALL_FIELDS = tuple(one.name for one in fields(Request))
_DEFAULTS: Mapping[str, Any] = {
    one.name: one.default_factory() if callable(one.default_factory) else one.default for one in fields(Request)
}
_SHAPE_FIELDS = tuple(name for name in _ALL_FIELDS if name not in _CALL_FIELDS)
# With members these must be left to them; the policy, weights and project of a call are its members' too.
_PLACE_FIELDS = (*(n for n in _SHAPE_FIELDS if n not in {"policy", "weights"}), "count")
_SHAPE = Fields(_SHAPE_FIELDS, _DEFAULTS)
_DIGEST = Fields(tuple(name for name in _ALL_FIELDS if name not in _OF_THE_ANSWER), _DEFAULTS)


class _Texts(NamedTuple):
    shape: str
    canonical: str
    digest: str


# Most requests say these fields alone, and few different things. Their values are hashable, and of one type each, so
# that equal values have equal texts (1 and 1.0, which weights may be, have not).
_USUAL_FIELDS = frozenset(("resources", "required", "zones", "project", "consumer", "lease_s"))
_RARE_FIELDS = tuple(name for name in _ALL_FIELDS if name not in _USUAL_FIELDS | _OF_THE_ANSWER)
_RARE_VALUES: Callable[[Request], tuple[Any, ...]] = attrgetter(*_RARE_FIELDS)
_RARE_DEFAULTS = tuple(_DEFAULTS[name] for name in _RARE_FIELDS)
_MAX_TEXTS = 4096
_texts: dict[tuple[Any, ...], _Texts] = {}


def _shared_texts(request: Request) -> _Texts | None:
    """Return the texts of a usual request, made once for all that say the same; None for one that says more."""
    if _RARE_VALUES(request) != _RARE_DEFAULTS:
        return None
    resources = frozenset(request.resources.items())
    key = (resources, request.required, request.zones, request.project, request.consumer, request.lease_s)
    texts = _texts.get(key)
    if texts is None:
        if len(_texts) >= _MAX_TEXTS:
            _texts.clear()
        canonical = as_text(request.words())
        texts = _texts[key] = _Texts(as_text(_SHAPE.of(request)), canonical, _digest_of(canonical))
    return texts


def _digest_of(canonical: str) -> str:
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()
