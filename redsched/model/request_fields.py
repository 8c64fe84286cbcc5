"""The fields of a request that describe its places and the call; all but the members of a gang."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from redsched.model.claims import Amounts, OnExit
from redsched.model.constraints import Group, Hints, Numa, PciDevices, Relation, Spread
from redsched.model.json_codec import CustomJson
from redsched.model.record import record

_NO_HINTS = Hints()


@record
class RequestFields(CustomJson):
    """The fields of a request, with their defaults."""

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
    """Properties of the work, not of a host (an image's os_type, a flavour's name), for aggregates to match."""
    query: tuple[Any, ...] = ()
    """Nova's JsonFilter: nested tuples of strings and numbers; () for none."""
    server_group: str = ""
    spread: tuple[Spread, ...] = ()
    numa: Numa | None = None
    pci: tuple[PciDevices, ...] = ()
    hints: Hints = _NO_HINTS
    policy: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)
    count: int = 1
    mode: Literal["all", "incremental"] = "all"
    relations: tuple[Relation, ...] = ()
    alternates: int = 0
    project: str = ""
    consumer: str = ""
    claim_ids: tuple[str, ...] = ()
    lease_s: int = 120
    until: Literal["claimed", "active"] = "claimed"
    """When the call returns: once the claims are made, or once their hosts have confirmed that the work runs."""
    queue_timeout_s: int = 0
    """How long to wait for room if nothing fits, in seconds."""
    confirm_timeout_s: int = 0
    """With `until: active`: seconds to wait for confirmations, over all attempts. 0: `lease_s` for each attempt."""
    claim: bool = True
    on_exit: OnExit = OnExit.RELEASE
    """What happens to each claim when the work that its hook named (pids, a cgroup) ends by itself."""
    max_attempts: int = 3
    """Placements after which a claim has failed, counted since it was last active. A gang has one attempt."""
