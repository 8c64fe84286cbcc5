"""The metrics filter: it applies only if the settings require metrics, and names the missing ones."""

from redsched.decide.filters.metrics import metrics_filter
from redsched.decide.rules import Rule
from redsched.model import Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of


def rules(**settings: object) -> list[Rule]:
    return list(metrics_filter(Settings.model_validate(settings))(Request({"VCPU": 1})))


def test_hosts_that_lack_a_required_metric_are_removed() -> None:
    columns = columns_of(
        a={"metric.cpu.percent": "12.5"}, b={"metric.temperature": "30"}, c={"metric.cpu.percent": "x"}
    )
    found = rules(metrics_weights={"cpu.percent": -1.0, "temperature": 0.0}, metrics_required=True)
    assert [rule.reason for rule in found] == ["metrics:cpu.percent", "metrics:temperature"]
    cpu = found[0]
    assert [bool(cpu.passes(columns, row)) for row in range(3)] == [True, False, False]
    assert cpu.passes(columns, slice(None)).tolist()[:3] == [True, False, False]
    assert [cpu.detail(columns, row) for row in (0, 1)] == [
        "needs the metric cpu.percent, is 12.5",
        "needs the metric cpu.percent, does not report it",
    ]


def test_metrics_are_only_weighed_unless_they_are_required() -> None:
    assert rules(metrics_weights={"cpu.percent": -1.0}) == []
    assert rules(metrics_required=True) == []
