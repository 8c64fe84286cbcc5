"""How far long work has come, told to whoever watches: a context variable, so that nothing in between passes it on.

Without a watcher, as in services, a report costs one look at the variable.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watch = Callable[[str, int, int | None], None]
"""Called with what is counted (`hosts`), how many are done, and how many there are; None if that is not known."""

_watch: ContextVar[Watch | None] = ContextVar("redsched_progress", default=None)


def report(what: str, done: int, total: int | None = None) -> None:
    """Tell the watcher, if there is one."""
    if (watch := _watch.get()) is not None:
        watch(what, done, total)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Tell `watch` what the block, and tasks that it begins, report."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)
