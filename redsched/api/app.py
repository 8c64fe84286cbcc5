"""The FastAPI application: its routes, its error handlers, and one Scheduler for its lifetime."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline
from starlette.routing import Route
from starlette.types import ASGIApp

import redsched.scheduler.preload  # noqa: F401 - workers are forks of the process that imports this module
from redsched.api import openapi, operations, problems
from redsched.api.access.changes import ClaimProjects
from redsched.api.access.gate import Gate
from redsched.api.access.in_progress import InProgress
from redsched.api.access.refused_agents import RefusedAgents
from redsched.api.access_log import AccessLog
from redsched.api.fast_path import FastPath
from redsched.api.methods import ImpliedMethods
from redsched.api.metrics import Metrics
from redsched.api.readiness import ReadinessMonitor
from redsched.api.routes import (
    agents,
    changes,
    claims,
    dashboard,
    declared,
    events,
    former_agents,
    hosts,
    plans,
    quotas,
    reports,
    selections,
    service,
)
from redsched.auth.authenticator import Authenticator
from redsched.errors import StoreUnavailable
from redsched.scheduler import Scheduler
from redsched.serve.browsers import Browsers, TrustedHosts
from redsched.serve.plain_paths import PlainPaths
from redsched.serve.registry import WorkerRegistry
from redsched.serve.request_ids import RequestIds
from redsched.settings import Settings

HANDLERS = (selections, claims, hosts, declared, quotas, plans, events, service)
"""The modules that register the handlers of operations as they are imported."""
BUSIEST = ("selections", "claims")
# The busiest first: routes are matched in order.
ROUTERS = (
    operations.router(lambda route: route.tag in BUSIEST),
    agents.router,
    former_agents.router,
    reports.router,
    operations.router(lambda route: route.tag not in BUSIEST),
    changes.router,
    service.router,
    dashboard.router,
)


def create_app(
    settings: Settings, registry: WorkerRegistry | None = None, authenticator: Authenticator | None = None
) -> FastAPI:
    """Return the API over the store of `settings`. Its startup raises StoreUnavailable without a usable store.

    `authenticator` takes the place of the one that `auth` of the settings asks for; without both, everybody may do
    everything. Raises InvalidRequest for an invalid token file.
    """
    registry = registry or WorkerRegistry()
    authenticator = authenticator or Authenticator.of(settings)
    # Serve /docs from this process: the network of a fleet often has no internet access.
    app = FastAPIOffline(
        title="redsched",
        version=version("redsched"),
        summary="A shared-state scheduler on Redis: which host takes this, and is it really mine?",
        openapi_tags=[{"name": name, "description": about} for name, about in openapi.TAGS.items()],
        generate_unique_id_function=lambda route: route.name,
        lifespan=_lifespan(settings, registry, authenticator),
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.closing = asyncio.Event()
    app.state.refused_agents = RefusedAgents()
    # Kept flat, with /docs: FastAPI hides the routes of included routers behind one that has no methods.
    app.state.routes = [route for one in (app, *ROUTERS) for route in one.routes if isinstance(route, Route)]
    for router in ROUTERS:
        app.include_router(router)
    app.add_middleware(ImpliedMethods)
    problems.install(app)
    openapi.install(app)
    app.state.is_valid = authenticator.still_valid if authenticator else lambda _: True
    # Outside what FastAPI adds around all middleware, so it comes last.
    app.middleware_stack = _gated(app, settings, TrustedHosts.of(settings, registry.bound), authenticator)
    return app


def _gated(
    app: FastAPI, settings: Settings, trusted: TrustedHosts | None, authenticator: Authenticator | None
) -> ASGIApp:
    """Return the app inside the middleware that identifies requests and refuses those that may not pass."""
    inside = InProgress(PlainPaths(FastPath(app.build_middleware_stack())))
    checked = Browsers(Gate(inside, app.state.routes, authenticator, app.state.refused_agents), trusted)
    return RequestIds(AccessLog(checked) if settings.access_log else checked)


def _lifespan(
    settings: Settings, registry: WorkerRegistry, authenticator: Authenticator | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if not settings.redis_url:
            raise StoreUnavailable(
                "no store is configured: set REDSCHED_REDIS_URL, or use `redsched up`, which starts one"
            )
        app.state.metrics = metrics = Metrics()
        async with Scheduler.connect(
            settings.redis_url, settings, observe=metrics.observe, plan_apart=True
        ) as scheduler:
            app.state.scheduler = scheduler
            metrics.serve_fleet(scheduler.fleet)
            scheduler.on_feed_lag(metrics.feed_lag.observe)
            app.state.claim_projects = ClaimProjects(scheduler)
            app.state.change_log = None
            app.state.readiness = ReadinessMonitor(scheduler, registry, metrics)
            tasks = [
                asyncio.create_task(app.state.readiness.keep(app.state.closing)),
                asyncio.create_task(_end_waits(scheduler, app.state.closing)),
            ]
            if authenticator is not None:
                tasks.append(asyncio.create_task(authenticator.watch_file(app.state.closing)))
            try:
                yield
            finally:
                app.state.closing.set()
                await asyncio.gather(*tasks)

    return lifespan


async def _end_waits(scheduler: Scheduler, closing: asyncio.Event) -> None:
    """End the waits of agents for notifications once the process stops: they would keep it from stopping."""
    await closing.wait()
    await scheduler.agents.close()
