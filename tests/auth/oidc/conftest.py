"""Fixtures for tokens of a provider."""

from collections.abc import Iterator

import pytest

from tests.auth.oidc.provider import Provider, provider


@pytest.fixture
def oidc() -> Iterator[Provider]:
    with provider() as served:
        yield served
