"""Every operation of the table has a case."""

from importlib import import_module
from pathlib import Path

from redsched.operations.fleet import RestFleet
from redsched.operations.table import ALL
from tests.contract.parts import CASES

OF_REST = {RestFleet.about.name}
"""What only an API can say, of itself: `test_fleet.py` has its test."""


def test_every_operation_has_a_case() -> None:
    for module in Path(__file__).parent.glob("test_*.py"):
        import_module(f"tests.contract.{module.stem}")
    assert {one.name for one in ALL} - OF_REST == CASES.keys()
