"""The API over a real store: `api` is a client of an app in this process, with one host, h1, that has attested."""

from collections.abc import AsyncIterator

import httpx
import pytest

from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from tests.api.parts import client_of, put_host
from tests.support.store_users import url_as


@pytest.fixture
async def empty_api(clean_store: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the API over an empty store."""
    settings = Settings(redis_url=url_as(clean_store, StoreRole.SCHEDULER), max_body_bytes=4096)
    async with client_of(settings, is_new=True) as client:
        yield client


@pytest.fixture
async def api(empty_api: httpx.AsyncClient) -> httpx.AsyncClient:
    """Return a client of the API with host h1: 8 VCPU, 16384 MEMORY_MB, in zone az1."""
    await put_host(empty_api, "h1")
    return empty_api
