"""A Nova filter class as a Filter: one rule, tested on the rows that passed all others."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.plugins.nova.host_state import HostState, states_of
from redsched.decide.plugins.nova.limited import LimitedList
from redsched.decide.plugins.nova.loading import calling, load
from redsched.decide.plugins.nova.novas_objects import stand_ins
from redsched.decide.plugins.nova.request_spec import RequestSpec
from redsched.decide.rules import Filter, Mask, Rows, Rule
from redsched.model import Request

NOVA = "nova"


def nova_filters(paths: Iterable[str]) -> tuple[Filter, ...]:
    """Make a Filter of each class: by `filter_all(host_states, spec_obj)` if it has that, else `host_passes` per host.

    Hosts that it rejects are counted under `nova:<class>`. Raises InvalidRequest if a class cannot be used.
    """
    found = load("REDSCHED_NOVA_FILTERS", paths, ("host_passes", "filter_all"))
    return tuple(_filter(name, plugin) for name, plugin in found)


def _filter(name: str, plugin: Any) -> Filter:
    host_state, request_spec = stand_ins(plugin)

    def rules(request: Request) -> Iterator[Rule]:
        def passes(columns: Columns, rows: Rows) -> Mask:
            states = states_of(columns, rows, request, host_state)
            spec = request_spec(_request=request, _columns=columns)
            passing = {id(state) for state in _passing(name, plugin, states, spec)}
            return np.array([id(state) in passing for state in states], np.bool_).reshape(
                np.shape(columns.claims[rows])
            )[()]

        def detail(columns: Columns, row: int) -> str:
            return f"{name} {'passes' if passes(columns, row) else 'does not pass'} it"

        # What the class reads is unknown, so nothing may be cached. It may expect what other rules have tested, such as
        # an address of the host.
        yield Rule(f"{NOVA}:{name}", passes, detail, dynamic=True, guarded=True)

    return rules


def _passing(name: str, plugin: Any, states: LimitedList[HostState], spec: RequestSpec) -> list[HostState]:
    if hasattr(plugin, "filter_all"):
        # It may be a generator; None means that no host is left.
        return calling(name, states, lambda: list(plugin.filter_all(states, spec) or ()))
    return calling(name, states, lambda: [state for state in states if plugin.host_passes(state, spec)])
