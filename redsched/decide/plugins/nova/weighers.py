"""A Nova weigher class as a Weigher: normalized over the hosts that fit, with its own multiplier."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.plugins.nova.host_state import HostState, states_of
from redsched.decide.plugins.nova.lazy_object import make_object
from redsched.decide.plugins.nova.limited import LimitedList
from redsched.decide.plugins.nova.loading import calling, load
from redsched.decide.plugins.nova.novas_objects import stand_ins
from redsched.decide.plugins.nova.request_spec import RequestSpec
from redsched.decide.rules import Rows
from redsched.decide.scoring.weigher import Score, Weigher
from redsched.errors import PluginError
from redsched.model import Request


def nova_weighers(paths: Iterable[str]) -> Mapping[str, Weigher]:
    """Make a Weigher of each class, named by the class: by `weigh_objects` if it has that, else `_weigh_object`.

    Uses its `minval`, `maxval` and `weight_multiplier(host_state)` if it has them. Raises InvalidRequest if a class
    cannot be used.
    """
    return {
        name: _weigher(name, plugin)
        for name, plugin in load("REDSCHED_NOVA_WEIGHERS", paths, ("_weigh_object", "weigh_objects"))
    }


def _weigher(name: str, plugin: Any) -> Weigher:
    host_state, request_spec = stand_ins(plugin)

    def raw(columns: Columns, request: Request, rows: Rows) -> Score:
        spec, states = request_spec(_request=request, _columns=columns), states_of(columns, rows, request, host_state)
        return _shaped(columns, rows, _weights(name, plugin, states, spec))

    def multiplied(columns: Columns, rows: Rows, multiplier: float) -> Score:
        if not hasattr(plugin, "weight_multiplier"):
            return multiplier
        states = states_of(columns, rows, None, host_state)
        own = calling(name, states, lambda: [float(plugin.weight_multiplier(one)) for one in states])
        return multiplier * _shaped(columns, rows, own)

    lowest, highest = getattr(plugin, "minval", None), getattr(plugin, "maxval", None)
    # What the class reads is unknown, so nothing may be cached.
    return Weigher(name, raw, relative=True, dynamic=True, lowest=lowest, highest=highest, multiplied=multiplied)


def _weights(name: str, plugin: Any, states: LimitedList[HostState], spec: RequestSpec) -> list[float]:
    if not hasattr(plugin, "weigh_objects"):
        return calling(name, states, lambda: [float(plugin._weigh_object(one, spec)) for one in states])
    objects = LimitedList([make_object("WeighedHost", obj=one, host=one.host, weight=0.0) for one in states])
    weights = calling(name, objects, lambda: [float(one) for one in plugin.weigh_objects(objects, spec)])
    if len(weights) != len(states):
        raise PluginError(f"Nova's class {name} returned {len(weights)} weights for {len(states)} hosts")
    return weights


def _shaped(columns: Columns, rows: Rows, values: list[float]) -> Score:
    return np.array(values, np.float64).reshape(np.shape(columns.claims[rows]))[()]
