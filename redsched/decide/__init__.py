"""Decisions: filtering, weighing and picking as pure functions of columns and a request, without Redis or asyncio."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from redsched.decide.result import Decision, Place

if TYPE_CHECKING:
    from redsched.decide.decider import Decider
    from redsched.decide.scoring.demand import taken_by

__all__ = [
    "Decider",
    "Decision",
    "Place",
    "taken_by",
]

_MODULES = {"Decider": "redsched.decide.decider", "taken_by": "redsched.decide.scoring.demand"}
"""What loads NumPy is imported on first access: clients of the API read results, and decide nothing."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
