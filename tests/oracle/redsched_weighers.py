"""Fleets of `cases.weighers` in redsched's terms, and the weights that its weighers give their hosts."""

from collections.abc import Sequence

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.scoring import score, weighers
from redsched.model import Request
from redsched.settings import Settings
from tests.oracle.cases.weighers import OPTIONS, THERE, Fleet
from tests.oracle.redsched_side import fields_of, group_fields
from tests.support.builders.columns import columns_of

NAMES = {weigher: option.removesuffix("_move") for weigher, option in OPTIONS.items()}
"""By Nova's class: redsched's weigher."""


def weights(fleet: Fleet) -> list[float]:
    """Return the weight of each host, multiplier included."""
    if fleet.weigher == "CrossCellWeigher":
        return _weights_by_cell(fleet)
    columns = _columns(fleet, range(len(fleet.hosts)))
    group, image = "g" if "group" in fleet.spec else "", fleet.spec.get("image", {})
    return _scores(columns, fleet, Request({"VCPU": 1}, server_group=group, properties=image)).tolist()


def _weights_by_cell(fleet: Fleet) -> list[float]:
    # Work that moves leaves a further host of the first cell.
    found = [0.0] * len(fleet.hosts)
    moving = "from_cell" in fleet.spec
    for is_there in (False, True):
        rows = [number for number, host in enumerate(fleet.hosts) if (host["cell"] == THERE) is is_there]
        columns = _columns(fleet, rows)
        if not is_there:
            columns.put("former", {"version": "1"})
        request = Request({"VCPU": 1}, exclude_hosts=frozenset({"former"}) if moving else frozenset())
        for number, value in zip(rows, _scores(columns, fleet, request)[: len(rows)].tolist(), strict=True):
            found[number] = value
    return found


def _columns(fleet: Fleet, numbers: Sequence[int]) -> Columns:
    columns = columns_of(**{f"h{number}": fields_of(fleet.hosts[number]) for number in numbers})
    for name, metadata in fleet.aggregates.items():
        fields = {f"meta.{key}": text for key, text in metadata.items()}
        columns.declared.put("aggregate", name, {"version": "1"} | fields)
    if "group" in fleet.spec:
        members = {f"h{number}": fleet.hosts[number]["members"] for number in numbers}
        columns.declared.put("server-group", "g", group_fields(fleet.spec["group"], members))
    return columns


def _scores(columns: Columns, fleet: Fleet, request: Request) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    name, rows = NAMES[fleet.weigher], np.arange(len(columns))
    weigher = weighers(_settings(fleet))[name]
    multiplier = {**fleet.conf, **fleet.metrics_conf}
    option = "weight_multiplier" if fleet.metrics_conf else f"{OPTIONS[fleet.weigher]}_weight_multiplier"
    return np.broadcast_to(score(columns, request, {weigher: multiplier[option]}, rows), len(rows)).round(9)


def _settings(fleet: Fleet) -> Settings:
    metrics, images = fleet.metrics_conf.get("weight_setting", ()), fleet.conf.get("image_props_weight_setting", ())
    return Settings(metrics_weights=_factors(metrics), image_props_weights=_factors(images))


def _factors(setting: Sequence[str]) -> dict[str, float]:
    return {name: float(factor) for name, _, factor in (one.partition("=") for one in setting)}
