"""Differences in weights: the fleets of which they may differ."""

from tests.oracle.cases.weighers import HERE, Fleet


def has_no_multiplier_for_a_missing_metric(fleet: Fleet) -> bool:
    """Return whether a host lacks a metric and has a multiplier of 0."""
    named = {one.partition("=")[0] for one in fleet.metrics_conf["weight_setting"]}
    zero = {name for name, metadata in fleet.aggregates.items() if "0" in metadata.values()}
    is_off = not fleet.metrics_conf["weight_multiplier"]
    lacking = [host for host in fleet.hosts if not named <= host["metrics"].keys()]
    return any(is_off or zero.intersection(host.get("aggregates", ())) for host in lacking)


def is_in_one_cell(fleet: Fleet) -> bool:
    """Return whether all hosts are in the cell that work leaves."""
    return "from_cell" in fleet.spec and all(host["cell"] == HERE for host in fleet.hosts)


DIFFERENCES = {
    "MetricsWeigher": (
        has_no_multiplier_for_a_missing_metric,
        "A host that lacks one counts as unavailable even if its multiplier is 0; Nova then counts the metric as 0.",
    ),
    "CrossCellWeigher": (
        is_in_one_cell,
        "If all hosts that fit are in the old cell, they get 1, in Nova 0.",
    ),
}
"""By weigher: the fleets of which weights may differ, and what docs/comparison.md says of them."""
