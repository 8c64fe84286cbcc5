"""`--watch` goes on after what passes by itself, and ends with anything else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from redsched.cli import watching
from redsched.errors import (
    NotFound,
    OutcomeUnknown,
    RedschedError,
    SchemaMismatch,
    Settling,
    StoreUnavailable,
)
from redsched.settings import Settings


async def watched(monkeypatch: pytest.MonkeyPatch, *found: str | RedschedError) -> list[str]:
    """Watch what is found one after the other, until an error ends it. Returns what was shown."""

    @asynccontextmanager
    async def opened(*_: object, **__: object) -> AsyncIterator[None]:
        yield

    results, shown = iter((*found, NotFound("the end"))), list[str]()

    async def find(_: object) -> str:
        one = next(results)
        if isinstance(one, RedschedError):
            raise one
        return one

    monkeypatch.setattr(watching, "opened", opened)
    monkeypatch.setattr(watching, "EVERY_S", 0)
    with pytest.raises(RedschedError) as ended:
        await watching._watch(Settings(), find, shown.append)
    return [*shown, str(ended.value)]


@pytest.mark.parametrize(
    "error", [StoreUnavailable("away"), OutcomeUnknown("no reply"), Settling("new epoch")], ids=type
)
async def test_what_passes_is_said_once_and_then_the_list_is_shown_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: RedschedError
) -> None:
    assert await watched(monkeypatch, "before", error, error, "after") == ["before", "after", "the end"]
    assert capsys.readouterr().err == f"redsched: trying again: {error}\n"


@pytest.mark.parametrize("error", [SchemaMismatch("another release"), NotFound("gone")], ids=type)
async def test_what_does_not_pass_ends_it(monkeypatch: pytest.MonkeyPatch, error: RedschedError) -> None:
    assert await watched(monkeypatch, "before", error, "after") == ["before", str(error)]


async def test_what_is_wrong_from_the_start_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await watched(monkeypatch, StoreUnavailable("away"), "after") == ["away"]
