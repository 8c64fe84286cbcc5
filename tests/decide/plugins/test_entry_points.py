"""Filters, weighers and policies from plugins: the example of the docs runs unchanged, and errors are reported."""

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from redsched import InvalidRequest, PluginError, Request, Settings
from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.plugins.entry_points import own_code
from redsched.decide.plugins.registry import plugin_registry
from tests.support.builders.columns import columns_of
from tests.support.builders.decisions import hosts_of
from tests.support.fleets.packages import EntryPoints, install

DOCS = Path(__file__).parents[3] / "docs"
DOC = (DOCS / "own-code.md").read_text()
EXAMPLE = (DOCS / "howto" / "write-a-filter.md").read_text()
USUAL = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1", "capacity.VCPU": "10"}
SMALL = Request({"VCPU": 1})

Installing = Callable[[str, str, EntryPoints], None]


@pytest.fixture
def installing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installing]:
    """Return a function that installs modules with entry points; afterwards they are removed and unloaded."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    own_code.cache_clear()
    yield lambda name, source, points: install(tmp_path, name, source, points)
    own_code.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def example(language: str) -> str:
    """Return the first block of a language in docs/howto/write-a-filter.md."""
    found = re.search(rf"```{language}\n(.*?)```", EXAMPLE, re.DOTALL)
    assert found, f"docs/howto/write-a-filter.md has no block of {language}"
    return found[1]


def degrees(**hosts: str) -> Columns:
    """Return hosts that differ only in temperature; '' for a host that does not report it."""
    return columns_of(**{host: USUAL | ({"metric.temperature": text} if text else {}) for host, text in hosts.items()})


def test_the_example_of_the_docs_filters_weighs_and_has_its_policy(installing: Installing) -> None:
    points = tomllib.loads(example("toml"))["project"]["entry-points"]
    installing("heat", example("python"), points)
    columns = degrees(hot="95", warm="60", cool="20", silent="")
    decider = Decider(columns, Settings())
    asked = Request({"VCPU": 1}, policy="quiet")
    assert hosts_of(decider.decide(asked, Random(0))) == [("cool", "warm", "silent")]
    explanation = decider.explain(SMALL, "hot")
    assert {one.reason: one.hosts for one in explanation.reasons} == {"hot": 1}
    hot = next(check for check in explanation.checks[0].checks if check.name == "hot")
    assert (hot.ok, hot.detail) == (False, "may have 80 degrees, has 95")
    unmoved = Request({"VCPU": 1}, properties={"heat": "any"}, policy="quiet")
    assert hosts_of(decider.decide(unmoved, Random(0))) == [("cool", "warm", "hot", "silent")]


COLUMNS = DOC[DOC.index("## The columns") : DOC.index("## Classes written for Nova")]


@pytest.mark.parametrize(
    "attribute", re.findall(r"`(\w+)[^`]*`", " ".join(re.findall(r"^\| ([^|]*) \|", COLUMNS, re.M)))
)
def test_every_attribute_that_is_promised_is_there(attribute: str) -> None:
    assert hasattr(Columns(), attribute)


def test_what_changes_is_decided_again(installing: Installing) -> None:
    installing("heat", example("python"), tomllib.loads(example("toml"))["project"]["entry-points"])
    columns = degrees(a="60", b="20")
    decider, asked = Decider(columns, Settings()), Request({"VCPU": 1}, policy="quiet")
    assert hosts_of(decider.decide(asked, Random(0))) == [("b", "a")]
    columns.patch("b", {"version": "2", "metric.temperature": "99"})
    assert hosts_of(decider.decide(asked, Random(0))) == [("a",)]


def test_aggregates_have_multipliers_for_ones_own_weigher_too(installing: Installing) -> None:
    installing("heat", example("python"), {"redsched.weighers": {"cool": "heat:cool"}})
    columns = columns_of(a={"aggregate.hall": "1"}, b={})
    columns.declared.put("aggregate", "hall", {"version": "1", "meta.cool_weight_multiplier": "3"})
    cool = plugin_registry(Settings()).weighers["cool"]
    assert [float(cool.multiplied(columns, row, 1.0)) for row in (0, 1)] == [3.0, 1.0]


def test_code_is_loaded_once(installing: Installing) -> None:
    installing("heat", example("python"), {"redsched.weighers": {"cool": "heat:cool"}})
    assert own_code() is own_code()
    assert plugin_registry(Settings()).weighers.keys() == plugin_registry(Settings()).weighers.keys()


SOURCE = """
from redsched import Rule, Weigher

number = 7
ram = Weigher("ram", lambda columns, request, rows: 1.0)
mine = Weigher("mine", lambda columns, request, rows: 1.0)
unknown = {"rom": 1.0}
wordy = {"ram": "much"}
pack = {"ram": 1.0}
"""


@pytest.mark.parametrize(
    ("group", "name", "value", "message"),
    [
        ("filters", "f", "site_code:number", "is 7: it must be a function of a request that yields Rules"),
        ("weighers", "w", "site_code:number", "is 7: it must be a Weigher with the name 'w'"),
        ("weighers", "other", "site_code:mine", "it must be a Weigher with the name 'other'"),
        ("weighers", "ram", "site_code:ram", "there is a weigher 'ram' already: give yours another name"),
        ("policies", "p", "site_code:number", "is 7: it must map names of weighers to multipliers"),
        ("policies", "p", "site_code:wordy", "it must map names of weighers to multipliers"),
        ("policies", "p", "site_code:unknown", "unknown weigher 'rom' in policy 'p'"),
        ("policies", "pack", "site_code:pack", "there is a policy 'pack' already: give yours another name"),
        ("policies", "my/p", "site_code:pack", "'my/p' is not a name"),
        (
            "filters",
            "f",
            "site_code:nothing",
            r"entry point 'f' of redsched.filters \(site_code:nothing\) cannot be loaded",
        ),
        ("filters", "f", "no_such_module:f", "cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_what_is_not_what_its_group_is_for_is_refused(
    installing: Installing, group: str, name: str, value: str, message: str
) -> None:
    installing("site_code", SOURCE, {f"redsched.{group}": {name: value}})
    with pytest.raises(InvalidRequest, match=message):
        plugin_registry(Settings())


def test_two_entry_points_of_one_name_are_refused(installing: Installing) -> None:
    installing("site_code", SOURCE, {"redsched.policies": {"p": "site_code:pack"}})
    installing("site_more", SOURCE, {"redsched.policies": {"p": "site_more:pack"}})
    with pytest.raises(InvalidRequest, match="has the name of site_code:pack: give it another"):
        plugin_registry(Settings())


BROKEN = """
import numpy as np
from redsched import Rule, Weigher

fail = lambda columns, *rest: 1 / 0
fine = lambda columns, rows: columns.present[rows]

def raises(request):
    yield Rule("r", fail, fail)

def unwilling(request):
    raise OSError("no such thing")

def wordy(request):
    yield "r"

def numbers(request):
    yield Rule("r", lambda columns, rows: columns.claims[rows], fail)

def short(request):
    yield Rule("r", lambda columns, rows: True, fail)

fails = Weigher("fails", fail)
words = Weigher("words", lambda columns, request, rows: np.full(np.shape(columns.claims[rows]), "x"))
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "raises",
            r"entry point 'raises' of redsched.filters \(broken:raises\) failed: ZeroDivisionError: division by",
        ),
        ("unwilling", "failed: OSError: no such thing"),
        ("wordy", "yielded 'r': it must yield redsched.Rule"),
        ("numbers", r"returned int64 of shape \(64,\): it must return bool of shape \(64,\), one for each row"),
        ("short", r"returned bool of shape \(\): it must return bool of shape \(64,\)"),
    ],
)
def test_a_filter_that_fails_is_named(installing: Installing, name: str, message: str) -> None:
    installing("broken", BROKEN, {"redsched.filters": {name: f"broken:{name}"}})
    with pytest.raises(PluginError, match=message):
        Decider(columns_of(a=USUAL), Settings()).decide(SMALL, Random(0))


@pytest.mark.parametrize(
    ("name", "message"),
    [("fails", "failed: ZeroDivisionError"), ("words", r"returned <U1 of shape \(1,\): it must return float64")],
)
def test_a_weigher_that_fails_is_named(installing: Installing, name: str, message: str) -> None:
    installing("broken", BROKEN, {"redsched.weighers": {name: f"broken:{name}"}})
    with pytest.raises(PluginError, match=message):
        Decider(columns_of(a=USUAL), Settings()).decide(Request({"VCPU": 1}, weights={name: 1.0}), Random(0))
