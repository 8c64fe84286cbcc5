"""The alert rules and the dashboard: they use metrics that exist, and each alert has a section that says what to do."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from redsched.api.metrics import Metrics
from redsched.cache.fleet import FleetUsage, fleet_steps
from redsched.cli.commands import entries
from redsched.decide.steps import finished
from tests.support.builders.columns import FIELDS, columns_of
from tests.unit.documented.test_documented_links import anchors, slug

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "docs" / "operate" / "monitoring"
PAGE = ROOT / "docs" / "operate" / "alerts.md"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"] for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
SUFFIXES = ("", "_bucket", "_sum", "_count")
LABELS = {
    "redsched_selections_total": {"outcome"},
    "redsched_refusals_total": {"reason"},
    "redsched_hosts_by_status": {"status"},
    "redsched_claims": {"host_status"},
    "redsched_leases_expired_total": {"of"},
    "redsched_fencing_total": {"outcome"},
    "redsched_audits_total": {"cell", "scope"},
    "redsched_audit_findings_total": {"invariant", "repaired"},
}
"""The labels in matchers besides those of places and of Prometheus itself."""


def exported() -> set[str]:
    """Return the names of all series."""
    metrics = Metrics()
    histograms = {name for name in metrics.names if name.endswith("_seconds")} | {"redsched_candidates_used"}
    return set(metrics.names) | {f"{name}{suffix}" for name in histograms for suffix in SUFFIXES}


def named(text: str) -> set[str]:
    return set(re.findall(r"\bredsched_\w+", text))


def expressions() -> Iterator[str]:
    """Yield every expression of a rule or a panel."""
    yield from (rule["expr"] for rule in RULES)
    yield from (target["expr"] for panel in PANELS for target in panel["targets"])


def test_every_metric_of_a_rule_or_panel_exists() -> None:
    used = {name for one in expressions() for name in named(one)}
    used |= {name for one in DASHBOARD["templating"]["list"] for name in named(json.dumps(one))}
    assert sorted(used - exported()) == []


def test_every_metric_is_in_the_dashboard_or_a_rule() -> None:
    """A few are left out: others show the same in more detail."""
    used = {re.sub(r"_(bucket|sum|count)$", "", name) for one in expressions() for name in named(one)}
    detailed = {"redsched_hosts", "redsched_hosts_alive", "redsched_hosts_attested"}
    assert Metrics().names - used == detailed


def test_matchers_use_labels_that_the_metric_has() -> None:
    places = {"job", "instance", "cell", "zone", "class"}
    unknown = [
        (name, label)
        for one in expressions()
        for name, matchers in re.findall(r"(redsched_\w+)\{([^}]*)\}", one)
        for label in re.findall(r"(\w+) *[=!]", matchers)
        if label not in places | LABELS.get(name, set())
    ]
    assert unknown == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_every_alert_has_a_section_that_says_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["annotations"]["summary"]
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"]["runbook"] == f"{PAGE.relative_to(ROOT)}#{slug(rule['alert'])}"
    assert slug(rule["alert"]) in anchors(PAGE)
    section = PAGE.read_text().split(f"\n## {rule['alert']}\n")[1].split("\n## ")[0]
    assert len(section) > 100
    # It says what to do: with commands or settings, or on the page that it leads to.
    assert "`" in section or "](" in section


def test_every_section_is_about_an_alert() -> None:
    assert re.findall(r"^## (\w+)$", PAGE.read_text(), re.MULTILINE) == [rule["alert"] for rule in RULES]


def test_the_page_names_commands_that_exist() -> None:
    commands = re.findall(r"`redsched ([a-z][a-z-]*(?: [a-z][a-z-]*)?)", PAGE.read_text())
    assert len(commands) > 10
    assert set(commands) - set(entries()) == set()


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (package prometheus)")


def promtool(*arguments: str) -> None:
    done = subprocess.run([PROMTOOL or "", *arguments], cwd=MONITORING, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", "alerts.yml")


@pytest.mark.heavy
@needs_promtool
def test_the_rules_fire_when_they_should_and_not_otherwise() -> None:
    promtool("test", "rules", "alerts_test.yml")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_every_rule_is_tested_with_what_it_fires_on_and_what_it_does_not(rule: dict[str, Any]) -> None:
    tests = yaml.safe_load((MONITORING / "alerts_test.yml").read_text())["tests"]
    of_rule = [one for test in tests for one in test["alert_rule_test"] if one["alertname"] == rule["alert"]]
    assert {bool(one["exp_alerts"]) for one in of_rule} == {True, False}


@needs_promtool
def test_promtool_accepts_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    """As recording rules, with a value for each variable of Grafana."""
    found = [re.sub(r"\$__rate_interval", "5m", re.sub(r"\$(job|cell|zone|class)", "x", one)) for one in expressions()]
    rules = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(found)]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(tmp_path / "rules.yml"))


@needs_promtool
def test_promtool_accepts_what_is_exposed() -> None:
    """Names, help texts and types follow the conventions of Prometheus."""

    async def fleet() -> dict[str, FleetUsage]:
        return {"c1": finished(fleet_steps(columns_of(h1=FIELDS)))}

    metrics = Metrics()
    metrics.serve_fleet(fleet)
    exposed, _ = asyncio.run(metrics.exposition())
    text = b"".join(line for line in exposed.splitlines(keepends=True) if b"redsched_" in line)
    assert b"redsched_free{" in text
    done = subprocess.run([PROMTOOL or "", "check", "metrics"], input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
