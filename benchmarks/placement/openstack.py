"""A running OpenStack Placement, as `benchmarks.placement` uses it: claims of resource classes that only it has.

The calls are those of Nova's scheduler: GET /allocation_candidates, PUT /allocations/{consumer} with a null consumer
generation, DELETE /allocations/{consumer}. Microversion 1.36 is the newest that every release since Train has.
Providers and classes have names of one run, so nothing else in the service is ever touched.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from benchmarks.placement.cycles import Claimed, ServiceError
from benchmarks.placement.json_client import Answer, JsonClient

MICROVERSION = "1.36"
CONCURRENT_UPDATE = "placement.concurrent_update"
MAX_CALLS = 4
"""As Nova's client: calls of one claim while they conflict. Nova pauses between them, this does not."""


class PlacementClient:
    """One client's connection."""

    def __init__(self, client: JsonClient, limit: int, seed: int) -> None:
        self._client, self._limit, self._rng = client, limit, Random(seed)
        self._project = str(uuid.uuid4())

    def claim(self, resource_class: str, amount: int) -> Claimed:
        """Claim an amount of a class from a random candidate, or from the others if that is full meanwhile."""
        path = f"/allocation_candidates?resources={resource_class}:{amount}&limit={self._limit}"
        candidates = _checked(self._client.request("GET", path), 200).body["allocation_requests"]
        self._rng.shuffle(candidates)
        conflicts, consumer = 0, str(uuid.uuid4())
        for candidate in candidates:
            for _ in range(MAX_CALLS):
                answer = self._allocate(consumer, candidate["allocations"])
                if answer.status == 204:
                    return Claimed(consumer, conflicts)
                _checked(answer, 409)
                if not _is_concurrent_update(answer):
                    break
                conflicts += 1
        return Claimed("", conflicts)

    def _allocate(self, consumer: str, allocations: dict[str, Any]) -> Answer:
        body = {
            "allocations": allocations,
            "consumer_generation": None,
            "project_id": self._project,
            "user_id": self._project,
        }
        return self._client.request("PUT", f"/allocations/{consumer}", body)

    def release(self, claim_id: str) -> None:
        """Delete a consumer's allocations."""
        _checked(self._client.request("DELETE", f"/allocations/{claim_id}"), 204)


def _is_concurrent_update(answer: Answer) -> bool:
    return any(error.get("code") == CONCURRENT_UPDATE for error in answer.body.get("errors", ()))


def _checked(answer: Answer, *expected: int) -> Answer:
    if answer.status not in expected:
        raise ServiceError(f"Placement answered {answer.status}, not {expected[0]}: {answer.body}")
    return answer


class PlacementService:
    """The service, with the providers of one run."""

    name = "placement"

    def __init__(self, url: str, token: str, limit: int) -> None:
        self._url, self._limit = url, limit
        self._headers = {"x-auth-token": token, "openstack-api-version": f"placement {MICROVERSION}"}
        self._run = uuid.uuid4().hex[:12]
        self.many, self.few = (f"CUSTOM_REDSCHED_BENCHMARK_{self._run.upper()}_{kind}" for kind in ("MANY", "FEW"))
        self._providers: list[str] = []

    @contextmanager
    def client(self, number: int) -> Iterator[PlacementClient]:
        """Open a connection."""
        with self._connect() as client:
            yield PlacementClient(client, self._limit, number)

    def _connect(self) -> JsonClient:
        return JsonClient(self._url, self._headers)

    @contextmanager
    def fleet(self, providers: int, capacity: int, places: int) -> Iterator[None]:
        """Create the providers, the first with `places` of the class `few` too; delete everything at the end."""
        with self._connect() as client:
            try:
                for name in (self.many, self.few):
                    _checked(client.request("PUT", f"/resource_classes/{name}"), 201, 204)
                for number in range(providers):
                    few = {self.few: {"total": places}} if not number else {}
                    self._create(client, number, {self.many: {"total": capacity}, **few})
                yield
            finally:
                self._delete(client)

    def _create(self, client: JsonClient, number: int, inventories: dict[str, Any]) -> None:
        body = {"name": f"redsched-benchmark-{self._run}-{number:05d}", "uuid": str(uuid.uuid4())}
        made = _checked(client.request("POST", "/resource_providers", body), 200).body
        self._providers.append(made["uuid"])
        inventory = {"resource_provider_generation": made["generation"], "inventories": inventories}
        _checked(client.request("PUT", f"/resource_providers/{made['uuid']}/inventories", inventory), 200)

    def _delete(self, client: JsonClient) -> None:
        """Delete what was created, as far as it was, and every allocation from it."""
        for provider in self._providers:
            found = _checked(client.request("GET", f"/resource_providers/{provider}/allocations"), 200)
            for consumer in found.body["allocations"]:
                _checked(client.request("DELETE", f"/allocations/{consumer}"), 204, 404)
            _checked(client.request("DELETE", f"/resource_providers/{provider}"), 204)
        for name in (self.many, self.few):
            _checked(client.request("DELETE", f"/resource_classes/{name}"), 204, 404)
        self._providers.clear()

    def used(self, resource_class: str) -> int:
        """Return the usage of the first provider."""
        with self._connect() as client:
            found = _checked(client.request("GET", f"/resource_providers/{self._providers[0]}/usages"), 200)
        return int(found.body["usages"].get(resource_class, 0))
