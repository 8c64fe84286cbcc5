"""The FastAPI application: its routes, its error handlers, and one Scheduler for its lifetime."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline
from starlette.routing import Route

from redsched.api import openapi, problems
from redsched.api.access.in_progress import InProgress
from redsched.api.browsers import Browsers, TrustedHosts
from redsched.api.fast_path import FastPath
from redsched.api.methods import ImpliedMethods
from redsched.api.metrics import Metrics
from redsched.api.plain_paths import PlainPaths
from redsched.api.readiness import ReadinessMonitor
from redsched.api.routes import changes, claims, declared, events, hosts, quotas, reports, selections, service
from redsched.errors import StoreUnavailable
from redsched.scheduler import Scheduler
from redsched.server.registry import WorkerRegistry
from redsched.settings import Settings

# The busiest first: routes are matched in order.
ROUTERS = (
    selections.router,
    claims.router,
    reports.router,
    hosts.router,
    declared.router,
    quotas.router,
    changes.router,
    events.router,
    service.router,
)


def create_app(settings: Settings, registry: WorkerRegistry | None = None) -> FastAPI:
    """Return the API over the store of `settings`. Its startup raises StoreUnavailable without a usable store."""
    registry = registry or WorkerRegistry()
    # Serve /docs from this process: the network of a fleet often has no internet access.
    app = FastAPIOffline(
        title="redsched",
        version=version("redsched"),
        summary="A shared-state scheduler on Redis: which host takes this, and is it really mine?",
        openapi_tags=[{"name": name, "description": about} for name, about in openapi.TAGS.items()],
        generate_unique_id_function=lambda route: route.name,
        lifespan=_lifespan(settings, registry),
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.closing = asyncio.Event()
    # Kept flat, with /docs: FastAPI hides the routes of included routers behind one that has no methods.
    app.state.routes = [route for one in (app, *ROUTERS) for route in one.routes if isinstance(route, Route)]
    for router in ROUTERS:
        app.include_router(router)
    app.add_middleware(ImpliedMethods)
    problems.install(app)
    openapi.install(app)
    # Outside what FastAPI adds around all middleware, so it comes last.
    inside = PlainPaths(FastPath(app.build_middleware_stack()))
    app.middleware_stack = Browsers(InProgress(inside), TrustedHosts.of(settings, registry.bound))
    return app


def _lifespan(settings: Settings, registry: WorkerRegistry) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if not settings.redis_url:
            raise StoreUnavailable(
                "no store is configured: set REDSCHED_REDIS_URL, or use `redsched up`, which starts one"
            )
        app.state.metrics = metrics = Metrics()
        async with Scheduler.connect(settings.redis_url, settings, observe=metrics.observe) as scheduler:
            app.state.scheduler = scheduler
            app.state.readiness = ReadinessMonitor(scheduler, registry, metrics)
            keeping = asyncio.create_task(app.state.readiness.keep(app.state.closing))
            try:
                yield
            finally:
                app.state.closing.set()
                await keeping

    return lifespan
