"""All checks of a request. Each error names the value seen and the next step.

A request is built for each call, so fields that are nearly always empty are tested together.
"""

from redsched.errors import InvalidRequest
from redsched.model.claims import GangOnExit, OnExit
from redsched.model.limits import (
    MAX_ALTERNATES,
    MAX_ATTEMPTS,
    MAX_CLASSES,
    MAX_CONDITIONS,
    MAX_COUNT,
    MAX_PARTS,
    MAX_RUNTIME_S,
    MAX_WAIT_S,
    MAX_WEIGHTS,
    check_any_of,
    check_lease,
    check_range,
    check_size,
)
from redsched.model.payload import check_payload
from redsched.model.request_fields import PlaceFields, RequestFields
from redsched.model.validation import (
    check_amount,
    check_class,
    check_condition,
    check_metadata,
    check_name,
    check_owner,
    check_trait,
)

_ON_EXIT = frozenset(OnExit)
_GANG_ON_EXIT = frozenset(GangOnExit)


def check_asked(request: RequestFields) -> None:
    """Raise InvalidRequest if a request without members requests nothing."""
    if request.relations:
        raise InvalidRequest("relations requires members: add them, or leave out relations")
    if not (request.resources or request.groups or request.numa or request.pci):
        raise InvalidRequest(
            'resources is empty: request at least one amount, such as {"VCPU": 1}, or for groups, numa, pci or members'
        )


def check_usual(request: RequestFields) -> None:
    """Raise InvalidRequest unless the fields that most requests set are valid."""
    check_size("resources", request.resources, MAX_CLASSES)
    for resource_class, amount in request.resources.items():
        check_amount(check_class(resource_class), amount, 1)
    for trait in request.required:
        check_trait(trait)
    for zone in request.zones:
        check_name("zone", zone)
    if request.project:
        check_name("project", request.project)
    if request.consumer:
        check_name("consumer", request.consumer)
    if request.owner:
        check_owner(request.owner)
    check_lease(request.lease_s)


def check_fields(request: RequestFields) -> None:
    """Raise InvalidRequest unless the value of each field is valid."""
    check_usual(request)
    _check_sizes(request)
    if request.groups or request.same_subtree:
        _check_groups(request)
    _check_traits(request)
    _check_where(request)
    if request.labels or request.aggregate_metadata or request.properties:
        _check_conditions(request)
    if request.spread:
        _check_spread(request)
    _check_numbers(request)
    _check_weights(request)
    if request.payload is not None:
        check_payload(request.payload)


def check_places(request: RequestFields, places: int) -> None:
    """Raise InvalidRequest unless this number of places, over all members, is allowed with these claim ids."""
    check_range("places of all members together", places, 1, MAX_COUNT)
    if request.claim_ids and len(request.claim_ids) != places:
        raise InvalidRequest(f"claim_ids has {len(request.claim_ids)} ids for {places} places: give one for each place")
    if len(set(request.claim_ids)) != len(request.claim_ids):
        raise InvalidRequest("claim_ids has an id twice: use a different id for each place")


def _check_sizes(request: RequestFields) -> None:
    for what in ("groups", "same_subtree", "pci", "spread", "member_of"):
        if parts := getattr(request, what):
            check_size(what, parts, MAX_PARTS)


def _check_groups(request: RequestFields) -> None:
    names = [group.name for group in request.groups]
    if len(set(names)) != len(names):
        raise InvalidRequest(f"groups has a name twice: {', '.join(names)}: use a different name for each")
    related = frozenset().union(*request.same_subtree)
    for name in sorted(related.difference(names)):
        raise InvalidRequest(f"same_subtree names {name!r}, which is not a group: use {', '.join(names) or 'groups'}")
    for group in request.groups:
        if not group.resources and group.name not in related:
            raise InvalidRequest(f"group {group.name!r} has no resources and is not in same_subtree: add either")


def _check_traits(request: RequestFields) -> None:
    for traits in (request.forbidden, request.root_required, request.root_forbidden):
        for trait in traits:
            check_trait(trait)
    if request.any_of:
        check_any_of(request.any_of)


def _check_where(request: RequestFields) -> None:
    for what, names in (
        ("host", request.hosts),
        ("host", request.exclude_hosts),
        ("claim id", request.claim_ids),
        ("aggregate", request.not_member_of),
    ):
        for name in names:
            check_name(what, name)
    for names in request.member_of:
        if not names:
            raise InvalidRequest("member_of has an empty list, which no host can satisfy: name an aggregate in each")
        for name in names:
            check_name("aggregate", name)
    if request.server_group:
        check_name("server group", request.server_group)


def _check_conditions(request: RequestFields) -> None:
    for what in ("labels", "aggregate_metadata", "properties"):
        check_size(what, getattr(request, what), MAX_CONDITIONS)
    for key, text in request.labels.items():
        check_condition(check_name("label", key), text)
    for conditions in (request.aggregate_metadata, request.properties):
        for key, text in conditions.items():
            check_metadata(key, text)


def _check_spread(request: RequestFields) -> None:
    by = [one.by for one in request.spread]
    if len(set(by)) != len(by):
        raise InvalidRequest(f"spread has a topology twice: {', '.join(by)}: give each once")


def _check_numbers(request: RequestFields) -> None:
    check_range("count", request.count, 1, MAX_COUNT)
    check_range("alternates", request.alternates, 0, MAX_ALTERNATES)
    if request.mode not in ("all", "incremental"):
        raise InvalidRequest(f"mode must be all or incremental, not {request.mode!r}")
    if request.until not in ("claimed", "active"):
        raise InvalidRequest(f"until must be claimed or active, not {request.until!r}")
    check_range("queue_timeout_s", request.queue_timeout_s, 0, MAX_WAIT_S)
    if request.reserve and not request.queue_timeout_s:
        raise InvalidRequest("reserve requires queue_timeout_s: how long the request waits")
    if request.reserve and request.count > 1:
        raise InvalidRequest("reserve is for one place: send a request for each place, or leave out reserve")
    check_range("confirm_timeout_s", request.confirm_timeout_s, 0, MAX_WAIT_S)
    if request.confirm_timeout_s and request.until != "active":
        raise InvalidRequest("confirm_timeout_s requires until: active")
    if request.on_exit not in _ON_EXIT:
        raise InvalidRequest(f"on_exit must be one of {', '.join(OnExit)}, not {request.on_exit!r}")
    if request.gang_on_exit is not GangOnExit.KEEP:
        _check_gang_on_exit(request)
    check_range("max_attempts", request.max_attempts, 1, MAX_ATTEMPTS)
    check_range("max_runtime_s", request.max_runtime_s, 0, MAX_RUNTIME_S)
    if request.group_policy not in ("none", "isolate"):
        raise InvalidRequest(f"group_policy must be none or isolate, not {request.group_policy!r}")


def _check_gang_on_exit(request: RequestFields) -> None:
    if request.gang_on_exit not in _GANG_ON_EXIT:
        raise InvalidRequest(f"gang_on_exit must be one of {', '.join(GangOnExit)}, not {request.gang_on_exit!r}")
    if request.mode != "all":
        raise InvalidRequest(
            f"gang_on_exit {request.gang_on_exit} is for gangs, whose mode is all, not {request.mode}: leave it out"
        )
    if request.gang_on_exit == GangOnExit.REPLACE and request.on_exit != OnExit.REPLACE:
        raise InvalidRequest(
            f"gang_on_exit replace requires on_exit replace, not {request.on_exit}: otherwise the member that ends is "
            "not placed again with the others"
        )
    if request.gang_on_exit == GangOnExit.REPLACE:
        check_not_spread(request)


def check_not_spread(place: PlaceFields) -> None:
    """Raise InvalidRequest if places that are placed again as a gang are spread over domains without a server group."""
    if place.count > 1 and not place.server_group and any(one.hard for one in place.spread):
        raise InvalidRequest(
            "gang_on_exit replace cannot be combined with a spread that is required: use a server group, a relation "
            "apart, or hard: false"
        )


def _check_weights(request: RequestFields) -> None:
    check_size("weights", request.weights, MAX_WEIGHTS)
    for name, multiplier in request.weights.items():
        if not -1e6 <= multiplier <= 1e6:
            raise InvalidRequest(f"weight {name!r} must be between -1e6 and 1e6, not {multiplier!r}")
