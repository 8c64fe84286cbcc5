"""Let something happen between two steps of a call, as if by another process."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest


def before_next(
    monkeypatch: pytest.MonkeyPatch, commands: object, name: str, happens: Callable[[], Awaitable[object]]
) -> None:
    """Await `happens()` once, before the next call of this method of an object."""
    method = getattr(commands, name)

    async def delayed(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(commands, name, method)
        await happens()
        return await method(*arguments, **named)

    monkeypatch.setattr(commands, name, delayed)
