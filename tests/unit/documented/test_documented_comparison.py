"""docs/comparison.md is complete and correct: every row is there, and everything that it names exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from redsched.decide.plugins.registry import plugin_registry
from redsched.model import GroupPolicy, RelationType, Request, ServerGroup
from redsched.model.record import adapter
from redsched.settings import Settings
from tests.decide.scoring.test_comparison import MORE_AND_LESS
from tests.support.openapi import openapi_document

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "comparison.md").read_text()
CONSTRAINTS = (ROOT / "docs" / "constraints.md").read_text()

FILTERS = [
    "AggregateImagePropertiesIsolation",
    "AggregateInstanceExtraSpecsFilter",
    "AggregateIoOpsFilter",
    "AggregateMultiTenancyIsolation",
    "AggregateNumInstancesFilter",
    "AggregateTypeAffinityFilter",
    "AllHostsFilter",
    "ComputeCapabilitiesFilter",
    "ComputeFilter",
    "DifferentHostFilter",
    "ImagePropertiesFilter",
    "IsolatedHostsFilter",
    "IoOpsFilter",
    "JsonFilter",
    "MetricsFilter",
    "NUMATopologyFilter",
    "NumInstancesFilter",
    "PciPassthroughFilter",
    "SameHostFilter",
    "ServerGroupAffinityFilter",
    "ServerGroupAntiAffinityFilter",
    "SimpleCIDRAffinityFilter",
]
WEIGHERS = [
    "RAMWeigher",
    "CPUWeigher",
    "DiskWeigher",
    "MetricsWeigher",
    "IoOpsWeigher",
    "PCIWeigher",
    "ServerGroupSoftAffinityWeigher",
    "ServerGroupSoftAntiAffinityWeigher",
    "BuildFailureWeigher",
    "CrossCellWeigher",
    "HypervisorVersionWeigher",
    "NumInstancesWeigher",
    "ImagePropertiesWeigher",
]
CANDIDATES = (
    "`resources`",
    "`required`",
    "`required=!T`",
    "`required=in:T1,T2`",
    "`member_of`",
    "`member_of=in:A,B`",
    "`member_of=!A`, `member_of=!in:A,B`",
    "`in_tree`",
    "`resources_X`",
    "`required_X`, also with `!` and `in:`",
    "`member_of_X`",
    "`in_tree_X`",
    "`group_policy`",
    "`limit`",
    "`root_required`, also with `!`",
    "`same_subtree`",
    "groups without resources",
    "sharing providers",
)


def rows(section: str) -> list[list[str]]:
    """Return the cells of a section's table, without the header."""
    lines = TEXT.split(f"## {section}\n")[1].split("\n## ")[0].splitlines()
    return [line.strip("|").split(" | ") for line in lines if line.startswith("| ")][1:]


TABLES = {
    "Nova's filters": FILTERS,
    "Nova's weighers": WEIGHERS,
    "Placement's allocation candidates": CANDIDATES,
}
ALL_ROWS = [row for section in TABLES for row in rows(section)]


@pytest.mark.parametrize("section", TABLES)
def test_every_name_has_its_row(section: str) -> None:
    assert [row[0].strip() for row in rows(section)] == list(TABLES[section])


def test_there_are_as_many_filters_and_weighers_as_nova_has() -> None:
    assert (len(set(FILTERS)), len(set(WEIGHERS))) == (22, 13)


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: row[0].strip())
def test_no_cell_is_empty_and_a_test_shows_the_row(row: list[str]) -> None:
    assert len(row) == 4
    assert all(cell.strip() for cell in row)
    assert re.fullmatch(r"(`tests/[\w/]+\.py::test_\w+`(, )?)+", row[3].strip())


@cache
def defined_in(path: Path) -> frozenset[str]:
    """Return the names of the tests that a file defines."""
    tree = ast.parse(path.read_text())
    return frozenset(one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(tests/[^`]+)`", TEXT))))
def test_every_test_that_is_named_exists(named: str) -> None:
    file, _, name = named.partition("::")
    assert name in defined_in(ROOT / file) if name else (ROOT / file).exists()


def fields(model: type, above: str = "") -> Iterator[str]:
    """Yield the names of a body's fields; nested ones with the name of their parent: `hints.same_host`."""
    schema = adapter(model).json_schema()
    return names_in(schema, schema["$defs"], above)


def names_in(schema: dict[str, Any], parts: dict[str, Any], above: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        yield f"{above}{name}"
        if name != "members":
            for part in re.findall(r"'#/\$defs/(\w+)'", str(field)):
                yield from names_in(parts[part], parts, f"{above}{name}.")


def metadata_keys() -> set[str]:
    """Return the metadata keys of aggregates in the tables of docs/constraints.md: `property:<key>`."""
    sections = (
        CONSTRAINTS.split(f"# {name}\n")[1].split("\n## ")[0] for name in ("What aggregates demand", "How much")
    )
    lines = [line for section in sections for line in section.splitlines() if line.startswith("| ")]
    return {name for line in lines for name in re.findall(r"`([a-z_-]+(?::<\w+>)?)`", line)}


def known() -> set[str]:
    """Return all names that the second column may contain."""
    made = plugin_registry(Settings())
    paths: dict[str, Any] = openapi_document()["paths"]
    routes = {f"{verb.upper()} {path}" for path, verbs in paths.items() for verb in verbs}
    settings = {f"REDSCHED_{name.upper()}" for name in Settings.model_fields}
    words = {str(one) for enum in (GroupPolicy, RelationType) for one in enum}
    asked = {*fields(Request), *fields(ServerGroup)}
    return asked | settings | routes | words | made.weighers.keys() | made.policies.keys() | metadata_keys()


KNOWN = known()


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: row[0].strip())
def test_what_a_row_says_that_there_is_exists(row: list[str]) -> None:
    assert set(re.findall(r"`([^`]+)`", row[1])) <= KNOWN


def test_what_exists_is_distinguished_from_what_does_not() -> None:
    assert {
        "hints.same_host",
        "groups.any_of",
        "ram",
        "nova",
        "property-confined:<key>",
        "max_io_ops_per_host",
    } <= KNOWN
    assert not KNOWN & {"hints.same_rack", "groups.member_of", "rom", "property-wanted:<key>", "REDSCHED_NOTHING"}


def test_every_weigher_of_nova_is_shown_to_choose_a_host() -> None:
    """All except `cross_cell`, which compares cells and has a separate test: one decision covers only one cell."""
    ours = {re.findall(r"`(\w+)`", row[1])[0] for row in rows("Nova's weighers")}
    policy = plugin_registry(Settings(spare_up_to=0)).policies["nova"]
    assert ours == {*MORE_AND_LESS, "cross_cell"} == policy.keys()
