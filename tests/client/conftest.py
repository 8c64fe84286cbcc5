"""An API with host h1 on a port of this machine, and a relay before it that loses replies."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from tests.api.parts import declare_new, put_host
from tests.client.relay import Relay, relay
from tests.support.processes.served_api import serving
from tests.support.store_users import url_as
from tests.support.waiting import patience_s


@pytest.fixture
async def settings(clean_store: str) -> Settings:
    """Return the settings of an API over an empty store, whose cell is declared new."""
    await declare_new(Settings(redis_url=clean_store))
    return Settings(redis_url=url_as(clean_store, StoreRole.SCHEDULER))


@pytest.fixture
async def served(settings: Settings) -> AsyncIterator[str]:
    """Yield the URL of an API with hosts h1 and h2: 8 VCPU and 16384 MEMORY_MB each."""
    async with serving(settings) as url:
        async with httpx.AsyncClient(base_url=url, timeout=patience_s(20)) as api:
            await asyncio.gather(put_host(api, "h1"), put_host(api, "h2"))
        yield url


@pytest.fixture
async def before(served: str) -> AsyncIterator[Relay]:
    """Yield a relay before that API."""
    async with relay(served) as one:
        yield one
