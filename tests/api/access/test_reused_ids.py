"""Ids that end and are used again between the check of the owner and the call: the call must not hit the new claim.

The interleaving is played by changing what the check reads: it sees the claim that was there before.
"""

from dataclasses import replace
from typing import Any

import pytest

from redsched.api.access import owned
from redsched.model import Claim
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claims.by_id import find_claim
from tests.api.access.parts import Callers, settle
from tests.api.parts import held


@pytest.fixture
def before_reuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each check of an owner see claim `db-*` as one of web that was placed before it."""

    async def found(cells: Cells, claim_id: str) -> tuple[Cell, Claim]:
        cell, claim = await find_claim(cells, claim_id)
        earlier = claim.token.rpartition(".")[0] + ".1"
        return cell, replace(claim, project="web", token=earlier, closed="", placements=())

    monkeypatch.setattr(owned, "find_claim", found)


CALLS: list[tuple[str, str, Any]] = [
    ("DELETE", "/v1/claims/db-1", None),
    ("DELETE", "/v1/claims/db-1?token={}", None),
    ("POST", "/v1/claims/db-1/confirm", {}),
    ("POST", "/v1/claims/db-1/renew", {}),
    ("POST", "/v1/claims/db-1/fail", {}),
    ("POST", "/v1/claims/db-1/fail", {"alternates": []}),
    ("POST", "/v1/claims/db-1/move", {}),
    ("POST", "/v1/claims/db-1/resize", {"resources": {"VCPU": 2}}),
    ("POST", "/v1/claims/db-1/shelve", {}),
    ("POST", "/v1/claims/db-shelved/unshelve", None),
]


@pytest.mark.usefixtures("before_reuse")
@pytest.mark.parametrize(("method", "path", "body"), CALLS)
async def test_an_id_that_was_used_again_is_not_hit(
    api: Callers, clean_store: str, method: str, path: str, body: Any
) -> None:
    """Not even by one who guesses the token of the new claim."""
    claims = await settle(api)
    before = held(clean_store)
    given = claims["db-1"]["token"]
    more = {} if body is None else {"json": {**body, "token": given}}
    answer = await api.send("web", method, path.format(given), **more)
    assert answer.status_code in (404, 409), answer.text
    assert held(clean_store) == before
