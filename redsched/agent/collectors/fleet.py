"""Fleets: hosts described by a YAML file, or simulated hosts. Each becomes a report; the file has a report's fields.

hosts:
  - name: rack1-{n}
    repeat: 40
    zone: az1
    traits: [HW_CPU_X86_AVX2]
    inventories: {VCPU: {total: 64, allocation_ratio: 4.0}, MEMORY_MB: {total: 256Gi}}
    pools:
      numa0: {inventories: {PCPU: {total: 16}}}
      gpu0: {parent: numa0, traits: [CUSTOM_GPU_T4], inventories: {CUSTOM_GPU_MILLI: {total: 1000}}}
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from redsched.errors import InvalidRequest
from redsched.model import HostReport, Inventory, Pool
from redsched.model.units import without_units
from redsched.yaml_io import parse_yaml, read_text

MAX_HOSTS = 100_000
LEASE_S = 30
ZONES = 4

_KEYS = {field.name for field in fields(HostReport)} | {"repeat"}
_INVENTORY_KEYS = {field.name for field in fields(Inventory)}
_POOL_KEYS = {field.name for field in fields(Pool)}


def fleet(argument: str, lease_s: int = LEASE_S) -> list[HostReport]:
    """Return the hosts of `--fleet`: a number of simulated hosts, or those of a file. Raises InvalidRequest.

    `lease_s`: the lease of simulated hosts, and of those to which the file gives none.
    """
    if argument.isdecimal():
        return simulated(int(argument), lease_s)
    return read_fleet(Path(argument), lease_s)


def simulated(count: int, lease_s: int = LEASE_S) -> list[HostReport]:
    """Return `count` identical hosts, sim-00001 and up, spread over the zones az1 to az4."""
    if not 1 <= count <= MAX_HOSTS:
        raise InvalidRequest(f"a simulated fleet has 1 to {MAX_HOSTS} hosts, not {count}")
    inventories = {"VCPU": Inventory(64), "MEMORY_MB": Inventory(262_144), "DISK_GB": Inventory(2_000)}
    return [
        HostReport(f"sim-{number:05d}", inventories, zone=f"az{(number - 1) % ZONES + 1}", lease_s=lease_s)
        for number in range(1, count + 1)
    ]


def read_fleet(path: Path, lease_s: int = LEASE_S) -> list[HostReport]:
    """Read a fleet file. Raises InvalidRequest with one line that names the file, the entry and the remedy."""
    text = read_text("fleet file", path)
    try:
        return parse_fleet(text, lease_s)
    except InvalidRequest as error:
        raise InvalidRequest(f"fleet file {path}: {error}") from error


def parse_fleet(text: str, lease_s: int = LEASE_S) -> list[HostReport]:
    """Parse the text of a fleet file. Raises InvalidRequest with one line that names the entry.

    `lease_s`: the lease of hosts to which the file gives none.
    """
    entries = _entries(parse_yaml(text))
    hosts: dict[str, HostReport] = {}
    for number, entry in enumerate(entries, 1):
        for report in _in_entry(number, entry, lease_s):
            if report.name in hosts:
                raise InvalidRequest(f"entry {number}: host {report.name!r} is given twice: names must be unique")
            hosts[report.name] = report
        if len(hosts) > MAX_HOSTS:
            raise InvalidRequest(f"entry {number}: a fleet file has at most {MAX_HOSTS} hosts")
    return list(hosts.values())


def _entries(document: object) -> list[object]:
    if not isinstance(document, dict) or not isinstance(document.get("hosts"), list):
        raise InvalidRequest("it must have `hosts:` with a list of hosts under it")
    unknown = sorted(str(key) for key in document.keys() - {"hosts"})
    if unknown:
        raise InvalidRequest(f"unknown key {unknown[0]!r} beside `hosts`: remove it")
    if not document["hosts"]:
        raise InvalidRequest("`hosts` is empty: describe at least one host")
    return list(document["hosts"])


def _in_entry(number: int, entry: object, lease_s: int) -> list[HostReport]:
    name = entry.get("name") if isinstance(entry, dict) else None
    try:
        return _reports({"lease_s": lease_s, **without_units(_mapping("an entry", entry))})
    except (InvalidRequest, TypeError) as error:
        raise InvalidRequest(f"entry {number}{f' ({name})' if isinstance(name, str) else ''}: {error}") from error


def _reports(entry: Mapping[str, Any]) -> list[HostReport]:
    _check_keys("", entry, _KEYS)
    for key in ("name", "inventories"):
        if key not in entry:
            raise InvalidRequest(f"`{key}` is missing")
    fields: dict[str, Any] = {key: _read(key, value) for key, value in entry.items() if key not in ("name", "repeat")}
    return [HostReport(name=name, **fields) for name in _names(entry)]


def _names(entry: Mapping[str, Any]) -> list[str]:
    name = _text("name", entry["name"])
    if "repeat" not in entry:
        if "{n}" in name:
            raise InvalidRequest("{n} in a name needs `repeat`, the number of such hosts")
        return [name]
    repeat = entry["repeat"]
    if isinstance(repeat, bool) or not isinstance(repeat, int) or not 1 <= repeat <= MAX_HOSTS:
        raise InvalidRequest(f"repeat must be a whole number from 1 to {MAX_HOSTS}, not {repeat!r}")
    if "{n}" not in name:
        raise InvalidRequest("with `repeat`, the name must contain {n} for the number, such as rack1-{n}")
    return [name.replace("{n}", str(number)) for number in range(1, repeat + 1)]


def _read(field: str, value: object) -> object:
    if field == "inventories":
        return _inventories(value)
    if field == "pools":
        return {name: _pool(name, one) for name, one in _mapping(field, value).items()}
    if field == "traits":
        return _traits(value)
    if field == "labels":
        return {key: _text(f"label {key!r}", one) for key, one in _mapping(field, value).items()}
    if field == "metrics":
        return {key: _number(f"metric {key!r}", one) for key, one in _mapping(field, value).items()}
    if field == "external":
        return _mapping(field, value)
    return value if field == "lease_s" else _text(field, value)


def _pool(name: str, value: object) -> Pool:
    fields = _mapping(f"pool {name}", value, "{inventories: {VCPU: {total: 8}}}")
    _check_keys(f"pool {name}: ", fields, _POOL_KEYS)
    try:
        return Pool(
            inventories=_inventories(fields.get("inventories", {})),
            parent=_text("parent", fields.get("parent", "")),
            traits=_traits(fields.get("traits", [])),
            device=_text("device", fields.get("device", "")),
        )
    except InvalidRequest as error:
        raise InvalidRequest(f"pool {name}: {error}") from error


def _inventories(value: object) -> dict[str, Inventory]:
    return {one: _inventory(one, fields) for one, fields in _mapping("inventories", value).items()}


def _traits(value: object) -> frozenset[str]:
    return frozenset(_text("a trait", trait) for trait in _list("traits", value))


def _inventory(name: str, value: object) -> Inventory:
    number = value if isinstance(value, int | str) and not isinstance(value, bool) else 8
    fields = _mapping(f"inventory {name}", value, f"{{total: {number!s:.20}}}")
    _check_keys(f"inventory {name}: ", fields, _INVENTORY_KEYS)
    if "total" not in fields:
        raise InvalidRequest(f"inventory {name}: `total` is missing")
    if "allocation_ratio" in fields:
        _number(f"inventory {name}: allocation_ratio", fields["allocation_ratio"])
    try:
        return Inventory(**fields)
    except InvalidRequest as error:
        raise InvalidRequest(f"inventory {name}: {error}") from error


def _check_keys(where: str, given: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(given.keys() - known)
    if unknown:
        raise InvalidRequest(f"{where}unknown key {unknown[0]!r}: use {', '.join(sorted(known))}")


def _mapping(what: str, value: object, example: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        form = f", such as {example}" if example else " (key: value)"
        raise InvalidRequest(f"{what} must be a mapping{form}, not {value!r:.80}")
    for key in value:
        _text(f"{what}: the key", key)
    return value


def _list(what: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise InvalidRequest(f"{what} must be a list, not {value!r:.80}")
    return value


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{what} must be text, not {value!r:.80}: put it in quotes")
    return value


def _number(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) == float("inf"):
        raise InvalidRequest(f"{what} must be a number, not {value!r:.80}")
    return value
