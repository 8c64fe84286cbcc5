"""What is asked for: resources and the pools they come from, where, with whom, how much, weighed how."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from operator import attrgetter
from typing import Any, Literal

from redsched.errors import InvalidRequest
from redsched.model.checks import MAX_CLASSES, MAX_PARTS, check_any_of, check_lease, check_range, check_size
from redsched.model.claims import Amounts
from redsched.model.parts import Gang, Group, Hints, Numa, PciDevices, Relation, Spread
from redsched.names import check_amount, check_class, check_condition, check_metadata, check_name, check_trait

MAX_COUNT = 200
"""Places of one request, over all its members."""
MAX_ALTERNATES = 50
_NO_HINTS = Hints()


@dataclass(frozen=True, slots=True)
class Request:
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
    members: tuple[Gang, ...] = ()
    relations: tuple[Relation, ...] = ()
    alternates: int = 0
    project: str = ""
    consumer: str = ""
    claim_ids: tuple[str, ...] = ()
    lease_s: int = 120
    claim: bool = True

    def __post_init__(self) -> None:
        # One is built for each call: what nearly all leave empty is asked about in one look.
        self._check_asked()
        self._check_amounts()
        if self.groups or self.same_subtree:
            self._check_groups()
        self._check_traits()
        self._check_where()
        if self.labels or self.aggregate_metadata or self.properties:
            self._check_said()
        if self.spread:
            self._check_spread()
        self._check_numbers()
        self._check_claim_ids()
        self._check_weights()

    @property
    def places(self) -> int:
        """How many places are asked for, over all members."""
        return sum(one.count for one in self.members) if self.members else self.count

    def _check_asked(self) -> None:
        if self.members:
            self._check_members()
        elif self.relations:
            raise InvalidRequest("relations name members, and there are none: give members")
        elif not (self.resources or self.groups or self.numa or self.pci):
            raise InvalidRequest(
                'resources is empty: ask for at least one amount, such as {"VCPU": 1}, or for groups, numa, pci or '
                "members"
            )

    def _check_members(self) -> None:
        for name in _PLACE_FIELDS:
            if getattr(self, name) != _DEFAULTS[name]:
                raise InvalidRequest(f"{name} stands beside members: give it to each member that it is meant for")
        names = [one.name for one in self.members]
        check_size("members", names, MAX_COUNT)
        if len(set(names)) != len(names):
            raise InvalidRequest("members names one twice: each needs a name of its own")
        for relation in self.relations:
            for name in relation.members:
                if name not in names:
                    raise InvalidRequest(f"a relation names {name!r}, which is no member: use {', '.join(names)}")

    def _check_amounts(self) -> None:
        check_size("resources", self.resources, MAX_CLASSES)
        for resource_class, amount in self.resources.items():
            check_amount(check_class(resource_class), amount, 1)
        for what in ("groups", "same_subtree", "pci", "spread", "member_of"):
            if parts := getattr(self, what):
                check_size(what, parts, MAX_PARTS)

    def _check_groups(self) -> None:
        names = [group.name for group in self.groups]
        if len(set(names)) != len(names):
            raise InvalidRequest("groups names one twice: each needs a name of its own")
        related = frozenset().union(*self.same_subtree)
        for name in sorted(related.difference(names)):
            raise InvalidRequest(f"same_subtree names {name!r}, which is no group: use {', '.join(names) or 'groups'}")
        for group in self.groups:
            if not group.resources and group.name not in related:
                raise InvalidRequest(f"group {group.name!r} asks for no resources, and no same_subtree names it")

    def _check_traits(self) -> None:
        for traits in (self.required, self.forbidden, self.root_required, self.root_forbidden):
            for trait in traits:
                check_trait(trait)
        if self.any_of:
            check_any_of(self.any_of)

    def _check_where(self) -> None:
        for what, names in (
            ("zone", self.zones),
            ("host", self.hosts),
            ("host", self.exclude_hosts),
            ("claim id", self.claim_ids),
            ("aggregate", self.not_member_of),
        ):
            for name in names:
                check_name(what, name)
        for names in self.member_of:
            if not names:
                raise InvalidRequest(
                    "member_of holds an empty list, which no host can satisfy: name an aggregate in each"
                )
            for name in names:
                check_name("aggregate", name)
        for what, name in (
            ("server group", self.server_group),
            ("project", self.project),
            ("consumer", self.consumer),
        ):
            if name:
                check_name(what, name)

    def _check_said(self) -> None:
        for key, text in self.labels.items():
            check_condition(check_name("label", key), text)
        for conditions in (self.aggregate_metadata, self.properties):
            for key, text in conditions.items():
                check_metadata(key, text)

    def _check_spread(self) -> None:
        by = [one.by for one in self.spread]
        if len(set(by)) != len(by):
            raise InvalidRequest("spread names one topology twice: give it once")

    def _check_numbers(self) -> None:
        check_range("count", self.count, 1, MAX_COUNT)
        if self.members:
            check_range("places of all members together", self.places, 1, MAX_COUNT)
        check_range("alternates", self.alternates, 0, MAX_ALTERNATES)
        check_lease(self.lease_s)
        if self.mode not in ("all", "incremental"):
            raise InvalidRequest(f"mode is all or incremental, not {self.mode!r}")
        if self.group_policy not in ("none", "isolate"):
            raise InvalidRequest(f"group_policy is none or isolate, not {self.group_policy!r}")

    def _check_claim_ids(self) -> None:
        if self.claim_ids and len(self.claim_ids) != self.places:
            raise InvalidRequest(
                f"claim_ids holds {len(self.claim_ids)} ids for count {self.places}: give one for each place"
            )
        if len(set(self.claim_ids)) != len(self.claim_ids):
            raise InvalidRequest("claim_ids names an id twice: each place needs an id of its own")

    def _check_weights(self) -> None:
        for name, multiplier in self.weights.items():
            if not -1e6 <= multiplier <= 1e6:
                raise InvalidRequest(f"weight {name!r} must be between -1e6 and 1e6, not {multiplier!r}")

    def shape(self) -> str:
        """Canonical JSON of all that a decision depends on: equal shapes have equal masks and scores."""
        return _as_text(_given(self, _SHAPE))

    def digest(self) -> str:
        """32 hex digits over what is asked for and for whom: what an id, sent again, must match."""
        return hashlib.blake2b(_as_text(_given(self, _DIGEST)).encode(), digest_size=16).hexdigest()


# Of the call and not of a place: they change neither which hosts fit nor how good those are. The project may, where
# aggregates are kept for projects: who remembers shapes has to look.
_CALL_FIELDS = frozenset(
    ("count", "mode", "members", "relations", "alternates", "project", "consumer", "claim_ids", "lease_s", "claim")
)
_ALL_FIELDS = tuple(one.name for one in fields(Request))
_DEFAULTS: Mapping[str, Any] = {
    one.name: one.default_factory() if callable(one.default_factory) else one.default for one in fields(Request)
}
_SHAPE_FIELDS = tuple(name for name in _ALL_FIELDS if name not in _CALL_FIELDS)
# With members these must be left to them; the policy, weights and project of a call are its members' too.
_PLACE_FIELDS = (*(n for n in _SHAPE_FIELDS if n not in {"policy", "weights"}), "count")


_AS_THEY_ARE = (str, int, float)
_as_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class _Fields:
    """Some fields of a request, made ready so that they are read in one go."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.defaults = tuple(_DEFAULTS[name] for name in names)
        self.values_of: Callable[[Request], tuple[Any, ...]] = attrgetter(*names)


_SHAPE = _Fields(_SHAPE_FIELDS)
_DIGEST = _Fields(tuple(name for name in _ALL_FIELDS if name not in {"claim_ids", "claim", "alternates"}))


def _given(request: Request, of: _Fields) -> dict[str, Any]:
    """What a request says, as JSON has it.

    What has its default is left out, so that a field which a later release adds changes no digest.
    """
    return {
        name: _plain(value)
        for name, value, default in zip(of.names, of.values_of(request), of.defaults, strict=True)
        # Nearly all of them are the default itself.
        if value is not default and value != default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, _AS_THEY_ARE):
        return value
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Request):
        return _given(value, _DIGEST)
    if isinstance(value, tuple):
        plain = [_plain(one) for one in value]
        return sorted(plain) if value and all(isinstance(one, frozenset) for one in value) else plain
    if isinstance(value, (dict, Mapping)):
        return {key: _plain(one) for key, one in value.items()}
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return value
