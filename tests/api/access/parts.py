"""Callers of each kind with their tokens, and an API with authentication over a store with hosts and claims of two
projects."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from redsched.settings import Settings
from tests.api.parts import REPORT, client_of
from tests.auth.parts import document, entry, token, write

WEB = {"role": "tenant", "projects": ["web"], "claim_prefix": "web-"}
TOKENS: Mapping[str, dict[str, Any]] = {
    "operator": {"role": "operator"},
    "reader": {"role": "reader"},
    "web": WEB,
    "web-sees": {**WEB, "sees_hosts": True},
    "db": {"role": "tenant", "projects": ["db"]},
    "both": {"role": "tenant", "projects": ["web", "db"]},
    "nameless": {"role": "tenant", "projects": [""]},
    "of-h1": {"role": "agent", "hosts": ["h1"], "projects": ["web"], "zones": ["az1"], "labels": ["rack"]},
    "of-h2": {"role": "agent", "hosts": ["h2"]},
    "expired": {"role": "operator", "expires": "2020-01-01T00:00:00Z"},
}
"""The fields of each token, by its id."""

VERBS: dict[str, dict[str, Any]] = {
    "confirm": {},
    "renew": {},
    "fail": {},
    "move": {},
    "resize": {"resources": {"VCPU": 2}},
    "shelve": {},
}
"""The body of each verb of one claim, besides the token."""

Headers = list[tuple[str, str]]


def bearer(name: str) -> Headers:
    """Return the header of the token with this id."""
    return [("Authorization", f"Bearer {token(name)}")]


STRANGERS: Mapping[str, Headers] = {
    "no token": [],
    "expired": bearer("expired"),
    "revoked": bearer("revoked"),
    "forged": [("Authorization", f"Bearer {token('operator', 2)}")],
    "cut off": [("Authorization", f"Bearer {token('operator')[:-1]}")],
    "longer": [("Authorization", f"Bearer {token('operator')}A")],
    "two headers": bearer("operator") * 2,
    "two in one header": [("Authorization", f"Bearer {token('operator')}, Bearer {token('operator')}")],
    "basic": [("Authorization", f"Basic {token('operator')}")],
    "no scheme": [("Authorization", token("operator"))],
    "empty": [("Authorization", "Bearer ")],
    "too long": [("Authorization", f"Bearer rst_{'a' * 9000}")],
    "in the query": [("X-Token", token("operator"))],
}
"""Headers that identify nobody."""


def token_file(folder: Path, **changed: dict[str, Any]) -> Path:
    """Write a file with all tokens, but without those that are revoked, and return its path."""
    entries = {name: fields for name, fields in {**TOKENS, **changed}.items() if fields}
    return write(folder / "tokens.yaml", document(*(entry(token(name), **fields) for name, fields in entries.items())))


def settings_of(url: str, file: Path) -> Settings:
    """Return the settings of an API with authentication."""
    return Settings(redis_url=url, auth=str(file))


class Callers:
    """A client of an API with authentication, which sends as any of the callers."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def send(self, who: str, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request with the token of this id, or as one of the strangers."""
        return await self.client.request(method, path, headers=STRANGERS.get(who) or bearer(who), **more)

    async def done(self, who: str, method: str, path: str, **more: Any) -> Any:
        """Send a request that must succeed, and return its JSON."""
        answer = await self.send(who, method, path, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def claim(self, claim_id: str, project: str, **more: Any) -> dict[str, Any]:
        """Claim as an operator, and return the selection."""
        asked = {"resources": {"VCPU": 1}, "claim_ids": [claim_id], "project": project, "lease_s": 3600}
        found = await self.done("operator", "POST", "/v1/selections", json={**asked, **more})
        return dict(found["selections"][0])


async def put_host(api: Callers, name: str, **changed: Any) -> None:
    """Report a host as an operator, and have it attest."""
    report = {**REPORT, **changed}
    answer = await api.done("operator", "PUT", f"/v1/hosts/{name}/report", json=report)
    if not answer["attested"]:
        await api.done("operator", "PUT", f"/v1/hosts/{name}/report", json={**report, "epoch": answer["epoch"]})


@asynccontextmanager
async def callers(url: str, file: Path) -> AsyncIterator[Callers]:
    """Yield the callers of an API over a new store."""
    async with client_of(settings_of(url, file), is_new=True) as client:
        yield Callers(client)


async def settle(api: Callers) -> dict[str, dict[str, Any]]:
    """Report h1, h2 and h3, claim for web on h1 and for db on h2, and declare a quota of each; return the claims."""
    await put_host(api, "h1")
    claims = {name: await api.claim(name, "web") for name in ("web-1", "web-shelved")}
    await put_host(api, "h2")
    claims |= {name: await api.claim(name, "db", exclude_hosts=["h1"]) for name in ("db-1", "db-shelved")}
    await put_host(api, "h3")
    await api.done("operator", "PUT", "/v1/aggregates/licensed", json={"hosts": ["h3"]})
    await api.done("operator", "PUT", "/v1/server-groups/spread", json={"policy": "anti-affinity"})
    await api.done("operator", "PUT", "/v1/shared-pools/seats", json={"inventories": {"CUSTOM_SEAT": {"total": 9}}})
    for project in ("web", "db"):
        await api.done("operator", "PUT", f"/v1/quotas/{project}", json={"limits": {"VCPU": 1000}})
    for name in ("web-shelved", "db-shelved"):
        await api.done("operator", "POST", f"/v1/claims/{name}/shelve", json={"token": claims[name]["token"]})
    return claims
