"""A double of OpenStack Placement: the calls that `benchmarks.placement` makes, as the API reference describes them.

It is no Placement: it has one lock, no database, and only microversion 1.36. Errors can be planted: conflicts of
generations, and units that are granted beyond the capacity.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

VERSION = "placement 1.36"
TOKEN = "the token"
Reply = tuple[int, dict[str, Any] | None]


@dataclass
class Provider:
    name: str
    generation: int = 0
    inventories: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass
class PlacementDouble:
    """The state, and the planted errors: every n-th allocation conflicts; `over_by` units too many are granted."""

    conflict_every: int = 0
    over_by: int = 0
    url: str = ""
    classes: set[str] = field(default_factory=set)
    providers: dict[str, Provider] = field(default_factory=dict)
    allocations: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    puts: int = 0
    """Calls of PUT /allocations so far."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def used(self, provider: str, resource_class: str) -> int:
        held = (resources.get(provider, {}) for resources in self.allocations.values())
        return sum(resources.get(resource_class, 0) for resources in held)

    def fits(self, provider: str, resources: dict[str, int]) -> bool:
        inventories = self.providers[provider].inventories
        return all(
            name in inventories and self.used(provider, name) + amount <= inventories[name]["total"] + self.over_by
            for name, amount in resources.items()
        )

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Reply:
        """Return status and body."""
        for pattern, name in ROUTES.items():
            if found := re.fullmatch(pattern, f"{method} {path}"):
                handle = getattr(self, name)
                return handle(query, body, *found.groups())  # type: ignore[no-any-return]
        return 404, problem("no such route")

    def put_class(self, _: Any, __: Any, name: str) -> Reply:
        created = name not in self.classes
        self.classes.add(name)
        return (201 if created else 204), None

    def delete_class(self, _: Any, __: Any, name: str) -> Reply:
        if name not in self.classes:
            return 404, problem("no such class")
        self.classes.discard(name)
        return 204, None

    def create(self, _: Any, body: Any) -> Reply:
        self.providers[body["uuid"]] = Provider(body["name"])
        return 200, {"uuid": body["uuid"], "name": body["name"], "generation": 0}

    def put_inventories(self, _: Any, body: Any, provider: str) -> Reply:
        one = self.providers[provider]
        if body["resource_provider_generation"] != one.generation:
            return 409, problem("generation conflict", "placement.concurrent_update")
        if not body["inventories"].keys() <= self.classes:
            return 400, problem("unknown resource class")
        one.inventories, one.generation = body["inventories"], one.generation + 1
        return 200, {"resource_provider_generation": one.generation, "inventories": one.inventories}

    def get_usages(self, _: Any, __: Any, provider: str) -> Reply:
        one = self.providers[provider]
        usages = {name: self.used(provider, name) for name in one.inventories}
        return 200, {"resource_provider_generation": one.generation, "usages": usages}

    def get_allocations_of(self, _: Any, __: Any, provider: str) -> Reply:
        held = {consumer: {"resources": one[provider]} for consumer, one in self.allocations.items() if provider in one}
        return 200, {"allocations": held, "resource_provider_generation": self.providers[provider].generation}

    def delete_provider(self, _: Any, __: Any, provider: str) -> Reply:
        if any(provider in one for one in self.allocations.values()):
            return 409, problem("has allocations", "placement.resource_provider.inuse")
        del self.providers[provider]
        return 204, None

    def candidates(self, query: dict[str, list[str]], _: Any) -> Reply:
        pairs = (pair.split(":") for pair in query["resources"][0].split(","))
        resources = {name: int(amount) for name, amount in pairs}
        if not resources.keys() <= self.classes:
            return 400, problem("unknown resource class")
        fitting = [one for one in self.providers if self.fits(one, resources)][: int(query["limit"][0])]
        requests = [{"allocations": {one: {"resources": resources}}, "mappings": {"": [one]}} for one in fitting]
        return 200, {"allocation_requests": requests, "provider_summaries": {one: {} for one in fitting}}

    def allocate(self, _: Any, body: Any, consumer: str) -> Reply:
        if body.keys() != {"allocations", "consumer_generation", "project_id", "user_id"}:
            return 400, problem(f"another schema: {sorted(body)}")
        self.puts += 1
        generation = 1 if consumer in self.allocations else None
        is_planted = self.conflict_every and self.puts % self.conflict_every == 0
        if body["consumer_generation"] != generation or is_planted:
            return 409, problem("generation conflict", "placement.concurrent_update")
        wanted = {provider: one["resources"] for provider, one in body["allocations"].items()}
        if not all(self.fits(provider, resources) for provider, resources in wanted.items()):
            return 409, problem("Unable to allocate inventory", "placement.undefined_code")
        self.allocations[consumer] = wanted
        for provider in wanted:
            self.providers[provider].generation += 1
        return 204, None

    def delete_allocations(self, _: Any, __: Any, consumer: str) -> Reply:
        return (404, problem("no allocations")) if self.allocations.pop(consumer, None) is None else (204, None)


ROUTES = {
    r"PUT /resource_classes/(\w+)": "put_class",
    r"DELETE /resource_classes/(\w+)": "delete_class",
    r"POST /resource_providers": "create",
    r"PUT /resource_providers/([\w-]+)/inventories": "put_inventories",
    r"GET /resource_providers/([\w-]+)/usages": "get_usages",
    r"GET /resource_providers/([\w-]+)/allocations": "get_allocations_of",
    r"DELETE /resource_providers/([\w-]+)": "delete_provider",
    r"GET /allocation_candidates": "candidates",
    r"PUT /allocations/([\w-]+)": "allocate",
    r"DELETE /allocations/([\w-]+)": "delete_allocations",
}


def problem(detail: str, code: str = "placement.undefined_code") -> dict[str, Any]:
    return {"errors": [{"detail": detail, "code": code}]}


@contextmanager
def running(double: PlacementDouble) -> Iterator[PlacementDouble]:
    """Serve the double below /placement, and set its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_call(self) -> None:
            where = urlsplit(self.path)
            size = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            if self.headers.get("x-auth-token") != TOKEN:
                status, found = 401, None
            elif self.headers.get("openstack-api-version") != VERSION or not where.path.startswith("/placement/"):
                status, found = 400, problem("another version or path")
            else:
                with double.lock:
                    path = where.path.removeprefix("/placement")
                    status, found = double.answer(self.command, path, parse_qs(where.query), body)
            text = b"" if found is None else json.dumps(found).encode()
            self.send_response(status)
            if status != 204:
                self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST = do_DELETE = handle_one_call  # noqa: N815 - names of http.server

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        double.url = f"http://127.0.0.1:{server.server_port}/placement"
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield double
        finally:
            server.shutdown()
            serving.join()
