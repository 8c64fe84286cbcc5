"""A pytest plugin that prints what each suite took, with `--suites`: tests, seconds, and seconds of the processor.

A suite is a folder below tests. The seconds are those of its tests, one after the other. Processor time includes
processes that a test has started and waited for, and not those that serve many tests.
"""

import resource
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass

import pytest

PROPERTY = "processor_s"
SLOWEST = 10
_began = pytest.StashKey[float]()


@dataclass(slots=True)
class Spent:
    """What tests took."""

    tests: int = 0
    elapsed_s: float = 0.0
    processor_s: float = 0.0

    def add(self, report: pytest.TestReport) -> None:
        """Add one phase of a test."""
        self.elapsed_s += report.duration
        if report.when == "teardown":
            self.tests += 1
            self.processor_s += sum(float(str(value)) for name, value in report.user_properties if name == PROPERTY)


_suites: dict[str, Spent] = defaultdict(Spent)
_modules: dict[str, Spent] = defaultdict(Spent)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--suites", action="store_true", help="print what each suite took")


def processor_s() -> float:
    """Return the processor time of this process, and of those that it has waited for."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in spent)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note when a test begins."""
    item.stash[_began] = processor_s()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note in the report of a test's end what it took."""
    if call.when == "teardown":
        item.user_properties.append((PROPERTY, processor_s() - item.stash[_began]))
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up, in the process that hears of all tests."""
    module = report.nodeid.partition("::")[0]
    _suites["/".join(module.split("/")[:2])].add(report)
    _modules[module].add(report)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the tables."""
    if not config.getoption("suites"):
        return
    total = Spent(
        sum(one.tests for one in _suites.values()),
        sum(one.elapsed_s for one in _suites.values()),
        sum(one.processor_s for one in _suites.values()),
    )
    slowest = sorted(_modules.items(), key=lambda one: -one[1].elapsed_s)[:SLOWEST]
    terminalreporter.write_line(f"{'tests':>7} {'seconds':>9} {'processor':>10}")
    for name, spent in (*sorted(_suites.items(), key=lambda one: -one[1].elapsed_s), ("all", total), *slowest):
        terminalreporter.write_line(f"{spent.tests:7} {spent.elapsed_s:9.1f} {spent.processor_s:10.1f}  {name}")
