"""Worlds of `cases.candidates` in Placement, and its candidates for each query. Needs Placement; loads it on demand."""

import importlib
import json
from typing import Any
from urllib.parse import urlencode

from tests.oracle.cases.candidates import AGGREGATES, Place, Query, World
from tests.oracle.digests import digest

SHARES = "MISC_SHARES_VIA_AGGREGATE"
UUIDS = {name: f"00000000-0000-4000-8000-0000000000a{name[1:]}" for name in AGGREGATES}


class Placement:
    """Placement in this process, with a database in an empty folder."""

    def __init__(self, folder: str) -> None:
        conf = importlib.import_module("placement.conf")
        config = importlib.import_module("oslo_config.cfg").ConfigOpts()
        conf.register_opts(config)
        config.set_override("connection", f"sqlite:///{folder}/placement.db", group="placement_database")
        config([], default_config_files=[])
        config.set_override("sync_on_startup", True, group="placement_database")
        config.set_override("auth_strategy", "noauth2", group="api")
        self._request: Any = importlib.import_module("webob").Request
        self._app = importlib.import_module("placement.deploy").loadapp(config)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Call the API, and return the status and the body."""
        request = self._request.blank(path, method=method)
        request.headers["x-auth-token"] = "admin"
        request.headers["openstack-api-version"] = "placement 1.39"
        request.accept = "application/json"
        if body is not None:
            request.body, request.content_type = json.dumps(body).encode(), "application/json"
        response = request.get_response(self._app)
        return response.status_int, response.json if response.body else None

    def put(self, method: str, path: str, body: Any = None) -> None:
        """Call the API. Raises RuntimeError if it refuses."""
        status, answer = self.call(method, path, body)
        if status >= 400:
            raise RuntimeError(f"{method} {path} {body}: {status} {answer}")


def candidates(placement: Placement, world: World) -> list[list[list[str]] | str]:
    """Return for each query a digest of each candidate, by host; the status if Placement refuses it."""
    names = _create(placement, world)
    found = [_answer(placement, query, names, len(world.hosts)) for query in world.queries]
    for uuid in reversed(names):
        placement.put("DELETE", f"/resource_providers/{uuid}")
    return found


def _create(placement: Placement, world: World) -> dict[str, tuple[str, str]]:
    """Create all providers, and return the host and place of each by UUID; the host '' is that of shared pools."""
    names: dict[str, tuple[str, str]] = {}
    for trait in sorted({trait for place in _places(world) for trait in place["traits"] if trait.startswith("CUSTOM")}):
        placement.put("PUT", f"/traits/{trait}")
    for one in ("CUSTOM_MEM", "CUSTOM_SEAT"):
        placement.put("PUT", f"/resource_classes/{one}")
    for number, host in enumerate(world.hosts):
        uuids: dict[str, str] = {}
        for name, place in host["places"].items():
            uuids[name] = f"00000000-0000-4000-8000-{number + 1:06d}{len(uuids):06d}"
            names[uuids[name]] = (f"h{number}", name)
            parent = {"parent_provider_uuid": uuids[place["parent"]]} if name else {}
            of_root = [] if name else host["aggregates"]
            _provide(placement, uuids[name], f"h{number} {name}", parent, place, place["traits"], of_root)
    for number, (name, place) in enumerate(world.shared.items()):
        uuid = f"00000000-0000-4000-8000-00000000005{number}"
        names[uuid] = ("", f"pool:{name}")
        _provide(placement, uuid, name, {}, place, [*place["traits"], SHARES], place["aggregates"])
    return names


def _places(world: World) -> list[Place]:
    return [place for host in world.hosts for place in host["places"].values()] + list(world.shared.values())


def _provide(
    placement: Placement,
    uuid: str,
    name: str,
    parent: dict[str, str],
    place: Place,
    traits: list[str],
    aggregates: list[str],
) -> None:
    placement.put("POST", "/resource_providers", {"name": name, "uuid": uuid} | parent)
    keys = ("total", "reserved", "allocation_ratio", "min_unit", "max_unit", "step_size")
    inventories = {name: dict(zip(keys, one, strict=True)) for name, one in place["inventories"].items()}
    provided = {"inventories": inventories, "traits": traits, "aggregates": [UUIDS[one] for one in aggregates]}
    at = f"/resource_providers/{uuid}"
    for what, values in provided.items():
        generation = placement.call("GET", at)[1]["generation"]
        placement.put("PUT", f"{at}/{what}", {what: values, "resource_provider_generation": generation})


def _answer(placement: Placement, query: Query, names: dict[str, tuple[str, str]], hosts: int) -> list[list[str]] | str:
    roots = {host: uuid for uuid, (host, place) in names.items() if not place}
    status, answer = placement.call("GET", f"/allocation_candidates?{urlencode(_parameters(query, roots))}")
    if status != 200:
        return str(status)
    found: list[set[str]] = [set() for _ in range(hosts)]
    for one in answer["allocation_requests"]:
        taken = {names[uuid]: given["resources"] for uuid, given in one["allocations"].items()}
        [host] = {host for host, _ in taken if host}
        found[int(host[1:])].add(digest({place: amounts for (_, place), amounts in taken.items()}))
    return [sorted(one) for one in found]


def _parameters(query: Query, roots: dict[str, str]) -> list[tuple[str, str]]:
    """Return the query as parameters of the API."""
    found = _of_group(query, "")
    for group in query.get("groups", ()):
        found += _of_group(group, f"_{group['name']}")
    found += [("same_subtree", ",".join(f"_{name}" for name in names)) for names in query.get("same_subtree", ())]
    found += [("member_of", f"in:{','.join(UUIDS[one] for one in names)}") for names in query.get("member_of", ())]
    if "not_member_of" in query:
        found.append(("member_of", f"!in:{','.join(UUIDS[one] for one in query['not_member_of'])}"))
    if "in_tree" in query:
        found.append(("in_tree", roots[query["in_tree"]]))
    of_root = [*query.get("root_required", ()), *(f"!{one}" for one in query.get("root_forbidden", ()))]
    if of_root:
        found.append(("root_required", ",".join(of_root)))
    if "group_policy" in query:
        found.append(("group_policy", query["group_policy"]))
    return found


def _of_group(group: dict[str, Any], suffix: str) -> list[tuple[str, str]]:
    found = []
    if group["resources"]:
        found.append((f"resources{suffix}", ",".join(f"{name}:{n}" for name, n in group["resources"].items())))
    traits = [*group.get("required", ()), *(f"!{one}" for one in group.get("forbidden", ()))]
    if traits:
        found.append((f"required{suffix}", ",".join(traits)))
    return found + [(f"required{suffix}", f"in:{','.join(one)}") for one in group.get("any_of", ())]
