"""All operations, by the method and path of their routes."""

from collections.abc import Mapping
from typing import Any

from redsched.operations.claims import Bulk, Claims
from redsched.operations.declared import Aggregates, Quotas, ServerGroups, SharedPools
from redsched.operations.events import Events
from redsched.operations.fleet import Fleet, RestFleet
from redsched.operations.hosts import Hosts
from redsched.operations.operation import BaseOperation
from redsched.operations.plans import Plans

GROUPS = (Fleet, RestFleet, Claims, Bulk, Hosts, Aggregates, ServerGroups, SharedPools, Quotas, Plans, Events)
"""The classes that have them; that of the fleet itself first."""

ALL: tuple[BaseOperation[Any, Any], ...] = tuple(
    one for group in GROUPS for one in vars(group).values() if isinstance(one, BaseOperation)
)
"""Each operation."""

_FIRST: dict[tuple[str, str], BaseOperation[Any, Any]] = {}
for _one in ALL:
    _FIRST.setdefault(_one.route.key, _one)
BY_ROUTE: Mapping[tuple[str, str], BaseOperation[Any, Any]] = _FIRST
"""By method and path, the first operation of each route: a dry run, for example, uses that of a selection."""
