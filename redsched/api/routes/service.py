"""How /v1 itself is handled, and /healthz, /readyz and /metrics: for operators of redsched."""

from fastapi import APIRouter, Request, Response

from redsched.api import responses
from redsched.api.access.callers import STRANGER, sees_all_claims
from redsched.api.openapi import answers
from redsched.api.operations import Call, handles
from redsched.api.problems import NotReady
from redsched.api.routes.common import caller
from redsched.model.records.service import About, Health, Ready
from redsched.operations.fleet import RestFleet

router = APIRouter(tags=["service"])

METRICS = {200: {"description": "OK", "content": {"text/plain": {"schema": {"type": "string"}}}}}


@handles(RestFleet.about)
async def get_about(request: Request, _: Call) -> Response:
    """Answer with what the service is, and what the caller may do."""
    app, by = request.app, caller(request)
    role = None if by is STRANGER else by.role
    return responses.answered(About(app.title, app.version, app.summary, app.openapi_url, "/docs", role))


@router.get("/healthz", summary="Check liveness", responses=answers({200: Health}, store=False))
async def get_health() -> Response:
    """Return 200 while the process responds. Does not check the store."""
    return responses.answered(Health())


@router.get("/readyz", summary="Check readiness", responses=answers({200: Ready}, NotReady))
async def get_readiness(request: Request) -> Response:
    """Return 200 if all caches have caught up, the store is usable, and the hosts that `up` waits for have reported.

    With authentication, only operators and readers get details.
    """
    readiness = await request.app.state.readiness.look()
    shows_details = sees_all_claims(caller(request))
    if not readiness.ready:
        raise NotReady(readiness.detail if shows_details else "not ready: an operator's token shows what is missing")
    if not shows_details:
        return responses.answered(Ready())
    return responses.answered(Ready("ready", readiness.detail, readiness.hosts, readiness.workers))


@router.get("/metrics", summary="Get metrics", response_class=Response, responses=METRICS)  # type: ignore[arg-type]
async def get_metrics(request: Request) -> Response:
    """Return Prometheus metrics, summed over the workers."""
    await request.app.state.readiness.look()
    content, media_type = await request.app.state.metrics.exposition()
    return Response(content, headers={"Content-Type": media_type})
