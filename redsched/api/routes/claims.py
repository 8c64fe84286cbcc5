"""/v1/claims: look at claims, and the verbs on one."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from redsched.api import render
from redsched.api.body import read
from redsched.api.models.answered import ClaimAnswer, ClaimsAnswer, EndingAnswer
from redsched.api.models.asked import ClaimsQuery, ReleaseQuery, RenewBody, TokenBody
from redsched.api.openapi import BODY, answers, body
from redsched.api.routes.parts import KNOWN_QUERY, ClaimId, scheduler
from redsched.errors import ClaimState, InvalidRequest, OutcomeUnknown, Settling, StaleToken, Unknown

router = APIRouter(prefix="/v1/claims", tags=["claims"], dependencies=[KNOWN_QUERY])

VERB = answers({200: ClaimAnswer}, *BODY, Unknown, ClaimState, StaleToken, Settling, OutcomeUnknown)


@router.get("", summary="List claims", responses=answers({200: ClaimsAnswer}, InvalidRequest))
async def list_claims(request: Request, query: Annotated[ClaimsQuery, Query()]) -> Response:
    """A page of claims, by host, then id. Ended ones are not in it."""
    page = await scheduler(request).claims.list(**query.model_dump())
    return render.answer({"claims": [render.claim(one) for one in page.items], "next": page.next})


@router.get("/{claim_id}", summary="One claim", responses=answers({200: ClaimAnswer}, InvalidRequest, Unknown))
async def get_claim(request: Request, claim_id: ClaimId) -> Response:
    """A claim; an ended one is remembered for a while."""
    return render.answer(render.claim(await scheduler(request).claims.get(claim_id)))


@router.post("/{claim_id}/confirm", summary="It runs", responses=VERB, openapi_extra=body(TokenBody))
async def confirm(request: Request, claim_id: ClaimId) -> Response:
    """The host's word that the work runs: the claim is active, and its lease ends."""
    token = (await read(request, TokenBody)).token
    return render.answer(render.claim(await scheduler(request).claims.confirm(claim_id, token)))


@router.post("/{claim_id}/renew", summary="Give it more time", responses=VERB, openapi_extra=body(RenewBody))
async def renew(request: Request, claim_id: ClaimId) -> Response:
    """Start the claim's lease anew. An active claim has none, and stays as it is."""
    asked = await read(request, RenewBody)
    found = await scheduler(request).claims.renew(claim_id, asked.token, asked.lease_s)
    return render.answer(render.claim(found))


@router.post("/{claim_id}/fail", summary="It cannot run", responses=VERB, openapi_extra=body(TokenBody))
async def fail(request: Request, claim_id: ClaimId) -> Response:
    """The work could not be started: the claim ends."""
    token = (await read(request, TokenBody)).token
    return render.answer(render.claim(await scheduler(request).claims.fail(claim_id, token)))


@router.delete(
    "/{claim_id}",
    status_code=204,
    summary="Release a claim",
    responses=answers(
        {204: None, 202: EndingAnswer},
        InvalidRequest,
        Unknown,
        ClaimState,
        StaleToken,
        Settling,
        OutcomeUnknown,
    ),
)
async def release(request: Request, claim_id: ClaimId, query: Annotated[ReleaseQuery, Query()]) -> Response:
    """204: free now. 202: ending, its host has to say that the work is gone (`force`: free at once)."""
    if await scheduler(request).claims.release(claim_id, query.token, force=query.force):
        return render.nothing()
    return render.answer({"claim_id": claim_id, "state": "ending"}, 202)
