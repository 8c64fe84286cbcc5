"""An API with authentication, hosts and claims, and a window of Chromium."""

import os
from collections.abc import Iterator

import httpx
import pytest

from redsched.store.embedded.server import PrivateServer
from tests.api.access.parts import token_file
from tests.api.dashboard.parts import GPU, Client
from tests.api.parts import worker_over
from tests.auth.parts import token
from tests.support.browser import Browser, browser
from tests.support.chromium import need_browser
from tests.support.waiting import patience_s

OFTEN = """
const later = window.setTimeout;
window.setTimeout = (run, ms, ...rest) => later(run, ms === 5000 || ms === 15000 ? ms / 10 : ms, ...rest);
"""
"""Pages read again after 0.5 s instead of 5, and the status after 1.5 s instead of 15."""


@pytest.fixture(scope="module")
def url(server: PrivateServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of an API with authentication."""
    need_browser()
    file = token_file(tmp_path_factory.mktemp("tokens"))
    with worker_over(server, REDSCHED_AUTH=os.fspath(file)) as found:
        yield found


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Client]:
    """Yield an operator's client, after it has made four hosts and three claims."""
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {token('operator')}"}, timeout=patience_s(20)
    ) as session:
        found = Client(session)
        found.put_host("h1")
        found.put_host("h2", zone="az2")
        found.put_host("h3", zone="az2")
        found.put_host("gpu1", zone="az2", **GPU)
        found.send("POST", "/v1/hosts/h3/disable")
        found.claim("web-1", hosts=["h1"])
        found.claim("web-2", hosts=["gpu1"], resources={"VCPU": 4, "CUSTOM_GPU_MILLI": 500})
        found.claim("web-3", hosts=["gpu1"], resources={"PCPU": 4}, consumer="render", owner="ann")
        yield found


@pytest.fixture(scope="module")
def page(client: Client) -> Iterator[Browser]:
    """Yield a window, beside an API with hosts and claims."""
    with browser() as found:
        found.devtools("Page.addScriptToEvaluateOnNewDocument", source=OFTEN)
        yield found
