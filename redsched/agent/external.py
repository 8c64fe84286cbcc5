"""Smooth a host's measured external usage, and decide whether two reports differ enough to send the newer one.

Measurements jitter. Unsmoothed, ten thousand machines would each write changes that no decision depends on.
"""

import dataclasses
import math
from collections.abc import Mapping

from redsched.agent.collectors.base import Observation
from redsched.model import Amounts, HostReport
from redsched.model.validation import split_slot

MEMORY_STEP_MB = 64
"""External MEMORY_MB of a host or NUMA node is rounded up to this step, and lowered only by two steps or more."""

GPU_STEP_MILLI = 50

METRIC_STEP = 5.0
"""A change of a metric by this much (mostly percentage points) causes a report; reports have the exact values."""

_STEPS = {"MEMORY_MB": MEMORY_STEP_MB, "CUSTOM_GPU_MEMORY_MB": MEMORY_STEP_MB, "CUSTOM_GPU_MILLI": GPU_STEP_MILLI}
"""Steps by resource class, for slots of any pool. All other classes have a step of 1."""


def remember(observation: Observation, remembered: Amounts) -> dict[str, int]:
    """Return the known unexplained usage after an observation: as measured in trusted slots, elsewhere unchanged."""
    known = dict(remembered)
    for slot in observation.trusted:
        known[slot] = _damped(slot, observation.unexplained.get(slot, 0), remembered.get(slot, 0))
    return known


def with_external(report: HostReport, remembered: Amounts) -> HostReport:
    """Return `report` with the larger of declared and measured usage as each slot's external usage."""
    slots = report.slots()
    amounts = {slot: max(report.external.get(slot, 0), remembered.get(slot, 0)) for slot in slots}
    external = {slot: amount for slot, amount in amounts.items() if amount}
    # Not replaced if equal: a report checks all its values when it is made.
    return report if external == report.external else dataclasses.replace(report, external=external)


def is_worth_sending(new: HostReport, sent: HostReport) -> bool:
    """Return whether two reports differ in something that matters to a decision or to a person."""
    if dataclasses.replace(new, metrics={}) != dataclasses.replace(sent, metrics={}):
        return True
    return _metrics_moved(new.metrics, sent.metrics)


def _metrics_moved(new: Mapping[str, float], sent: Mapping[str, float]) -> bool:
    return new.keys() != sent.keys() or any(abs(new[name] - sent[name]) >= METRIC_STEP for name in new)


def _damped(slot: str, measured: int, before: int) -> int:
    """Round up to the slot's step. Go down only by two steps, so that a value at the edge of a step does not flap."""
    step = _STEPS.get(split_slot(slot)[1], 1)
    rounded = math.ceil(measured / step) * step
    if before - 2 * step < rounded <= before and step > 1:
        return before
    return rounded
