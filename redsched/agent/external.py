"""What a host says of its external usage, and whether two reports differ enough to send the newer one.

Measurements jitter. Sent as they are, ten thousand machines would write a change each look that no decision depends on.
"""

import dataclasses
import math
from collections.abc import Mapping

from redsched.agent.collectors.base import Observation
from redsched.model import Amounts, HostReport
from redsched.model.validation import split_slot

MEMORY_STEP_MB = 64
"""External MEMORY_MB of the host or a NUMA node, rounded up to this, falls only when it has fallen by two steps."""

GPU_STEP_MILLI = 50

METRIC_STEP = 5.0
"""Metrics are compared in steps of this many units (percent points, mostly); a report sends them as last measured."""

_STEPS = {"MEMORY_MB": MEMORY_STEP_MB, "CUSTOM_GPU_MEMORY_MB": MEMORY_STEP_MB, "CUSTOM_GPU_MILLI": GPU_STEP_MILLI}
"""By resource class, in whichever pool it lies. All others go up and down by one."""


def remember(look: Observation, remembered: Amounts) -> dict[str, int]:
    """Return what is known of unexplained usage after this look: measured where it can be trusted, else as it was."""
    known = dict(remembered)
    for slot in look.trusted:
        known[slot] = _steady(slot, look.unexplained.get(slot, 0), remembered.get(slot, 0))
    return known


def with_external(report: HostReport, remembered: Amounts) -> HostReport:
    """Return `report` with the larger of what was declared and what was measured as each slot's external usage."""
    slots = report.slots()
    amounts = {slot: max(report.external.get(slot, 0), remembered.get(slot, 0)) for slot in slots}
    return dataclasses.replace(report, external={slot: amount for slot, amount in amounts.items() if amount})


def is_worth_sending(new: HostReport, sent: HostReport) -> bool:
    """Whether something differs between two reports that a decision or a person could depend on."""
    if dataclasses.replace(new, metrics={}) != dataclasses.replace(sent, metrics={}):
        return True
    return _metrics_moved(new.metrics, sent.metrics)


def _metrics_moved(new: Mapping[str, float], sent: Mapping[str, float]) -> bool:
    return new.keys() != sent.keys() or any(abs(new[name] - sent[name]) >= METRIC_STEP for name in new)


def _steady(slot: str, measured: int, before: int) -> int:
    """Round up to the slot's step. Down only by two steps, so that a value at a step's edge does not flap."""
    step = _STEPS.get(split_slot(slot)[1], 1)
    rounded = math.ceil(measured / step) * step
    if before - 2 * step < rounded <= before and step > 1:
        return before
    return rounded
