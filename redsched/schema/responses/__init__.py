"""Responses: the models that describe and build them, by subject.

They are imported when the first one is used, because the command line needs them only for `--json`.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redsched.schema.responses.hosts import (
        HeartbeatAnswer,
        InboxAnswer,
    )
    from redsched.schema.responses.problems import (
        FailedAttempt,
        FieldError,
        InvalidProblem,
        NotConfirmedProblem,
        NoValidHostProblem,
        Problem,
    )
    from redsched.schema.responses.quotas import (
        QuotaProblem,
    )
    from redsched.schema.responses.service import (
        HealthAnswer,
        ReadyAnswer,
    )

__all__ = [
    "FailedAttempt",
    "FieldError",
    "HealthAnswer",
    "HeartbeatAnswer",
    "InboxAnswer",
    "InvalidProblem",
    "NoValidHostProblem",
    "NotConfirmedProblem",
    "Problem",
    "QuotaProblem",
    "ReadyAnswer",
]


def __getattr__(name: str) -> Any:
    """Return a model by its name, from the module of its subject."""
    for one in iter_modules(__path__) if name in __all__ else ():
        module = import_module(f"{__name__}.{one.name}")
        found = getattr(module, name, None)
        if getattr(found, "__module__", "") == module.__name__:  # defined there, and not imported from elsewhere
            return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
