"""An API with authentication over a store with hosts and claims, and its callers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.access.parts import Callers, callers, settle, token_file


@pytest.fixture(scope="session")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of tokens that no test changes. One for all tests: apps are kept by their settings."""
    return token_file(tmp_path_factory.mktemp("tokens"))


@pytest.fixture
async def api(clean_store: str, tokens: Path) -> AsyncIterator[Callers]:
    """Yield the callers of an API over a new store."""
    async with callers(clean_store, tokens) as found:
        yield found


@pytest.fixture
async def settled(api: Callers) -> Callers:
    """Return the callers of an API with hosts h1, h2 and h3, and claims of web and of db."""
    await settle(api)
    return api
