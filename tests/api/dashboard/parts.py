"""Hosts and claims behind the dashboard, and how its pages are opened."""

import httpx

from tests.api.parts import REPORT
from tests.auth.parts import token
from tests.support.browser import Browser

HOSTILE = "<img src=x onerror=\"document.title='broken in'\">"
GPU = {
    "inventories": {"VCPU": {"total": 32}, "MEMORY_MB": {"total": 65_536}},
    "external": {"VCPU": 3},
    "pools": {
        "numa0": {"inventories": {"PCPU": {"total": 16}}},
        "gpu0": {
            "parent": "numa0",
            "inventories": {"CUSTOM_GPU_MILLI": {"total": 1000}},
            "traits": ["CUSTOM_GPU_T4"],
            "device": "GPU-5fd4f087",
        },
    },
    "labels": {"note": HOSTILE},
}


class Client:
    """An operator's calls of the API."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def send(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Send a request that must succeed."""
        answer = self._client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer

    def put_host(self, name: str, **changed: object) -> None:
        """Report a host, and have it attest."""
        report = {**REPORT, **changed}
        answer = self.send("PUT", f"/v1/hosts/{name}/report", report).json()
        if not answer["attested"]:
            self.send("PUT", f"/v1/hosts/{name}/report", {**report, "epoch": answer["epoch"]})

    def claim(self, claim_id: str, **more: object) -> None:
        """Claim for the project web."""
        asked = {"resources": {"VCPU": 2}, "claim_ids": [claim_id], "project": "web", "lease_s": 3600}
        self.send("POST", "/v1/selections", {**asked, **more})


def open_without_token(page: Browser, url: str, place: str) -> None:
    """Open a page in a tab that knows no token."""
    page.open(f"{url}/")
    page.run("sessionStorage.clear()")
    page.open("about:blank")  # or a new hash would not load the page again
    page.open(f"{url}/{place}")
    page.wait_for("document.querySelector('#sign-in').open")


def enter(page: Browser, url: str, who: str, place: str = "") -> None:
    """Open a page with a token, in a tab that knows none."""
    open_without_token(page, url, place)
    page.type("#token", token(who))
    page.click("#sign-in-form button")
    page.wait_for("!document.querySelector('#sign-in').open && document.querySelector('h1')")
