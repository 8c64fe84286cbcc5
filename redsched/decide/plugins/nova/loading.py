"""Classes by import path: instantiated once, checked for their methods, and called so that errors name them."""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, TypeVar

from redsched.decide.plugins.nova.catalogue import refuse_known
from redsched.decide.plugins.nova.configuration import MISSING, is_missing
from redsched.decide.plugins.nova.limited import LimitedList
from redsched.decide.work_limit import TooMuchWork
from redsched.errors import InvalidRequest, PluginError

Answer = TypeVar("Answer")

DECIDING = ("host_passes", "_filter_one", "filter_all", "_weigh_object", "weigh_objects")
"""The methods by which filters and weighers decide. Nova's base classes have them too, and come last."""


def load(setting: str, paths: Iterable[str], methods: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield an instance of each class, with the class's name. It must have one of `methods`.

    Raises InvalidRequest if a class cannot be found or instantiated, has none of them, has a name already in use, or is
    one of Nova's that cannot run here.
    """
    seen: dict[str, str] = {}
    for path in paths:
        refuse_known(setting, path, path)
        plugin = _make(setting, path)
        _refuse_heirs(setting, path, type(plugin))
        name = type(plugin).__name__
        if not any(callable(getattr(plugin, method, None)) for method in methods):
            raise InvalidRequest(f"{setting} names {path!r}, which has no method {' or '.join(methods)}")
        if name in seen:
            raise InvalidRequest(f"{setting} names {path!r} and {seen[name]!r}: two classes of the same name")
        seen[name] = path
        yield name, plugin


def _refuse_heirs(setting: str, path: str, plugin: type) -> None:
    """Raise InvalidRequest if what decides is the code of a class of Nova that cannot run here.

    A class decides itself if it, or one between, has one of `DECIDING`.
    """
    decides = next((one for one in plugin.__mro__ if vars(one).keys() & set(DECIDING)), plugin)
    refuse_known(setting, path, f"{decides.__module__}.{decides.__qualname__}")


def _make(setting: str, path: str) -> Any:
    module, _, name = path.rpartition(".")
    if not module:
        raise InvalidRequest(f"{setting} names {path!r}: give the import path of a class, such as package.module.Class")
    try:
        return getattr(import_module(module), name)()
    except Exception as error:  # the class's module may raise anything
        if is_missing(error):
            raise InvalidRequest(f"{setting} names {path!r}, but {MISSING}") from error
        raise InvalidRequest(f"{setting} names {path!r}, which cannot be instantiated: {error!r}") from error


def calling(name: str, states: LimitedList[Any], call: Callable[[], Answer]) -> Answer:
    """Call a plugin, which goes through these hosts. Raises PluginError with the class, the host and the error.

    What stand-ins raise passes through: InvalidRequest if a request has what its class cannot get, and TooMuchWork.
    """
    try:
        return call()
    except (InvalidRequest, TooMuchWork):
        raise
    except Exception as error:  # a plugin may raise anything, and the log must name it
        at = states.at(error)
        where = "" if at is None else f" on host {at.host}"
        raise PluginError(f"Nova's class {name} failed{where}: {type(error).__name__}: {error}") from error
