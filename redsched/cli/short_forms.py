"""Short forms of amounts on the command line: `GPU=2`, `GPU=0.5`, and `--same numa` for devices of one NUMA node.

They become the parts of a request that REST knows: groups, each of which comes from one pool, and a subtree that has
them all. `--show-request` prints what they made.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from redsched.cli import options
from redsched.cli.classes import UnknownClass
from redsched.errors import InvalidRequest
from redsched.model import NUMA_NODE
from redsched.model.gpus import GPU, NODE, group_name
from redsched.model.limits import MAX_PARTS
from redsched.model.units import is_in_pieces
from redsched.model.validation import is_class
from redsched.model.workload import GPU_SHARES, WHOLE_GPU

GPU_MEMORY = "CUSTOM_GPU_MEMORY_MB"

OF_THE_HOST = frozenset(("VCPU", "PCPU", "MEMORY_MB", "DISK_GB"))
"""The classes that are no devices: `--same` leaves them where they are free."""
_HUGE_PAGES = "CUSTOM_HUGE_PAGES_"

_WHOLE = re.compile(r"[1-9][0-9]{0,5}\Z")
_PART = re.compile(r"0?\.([0-9]{1,3})0*\Z")


class Same(StrEnum):
    """What the devices of a request may have to share."""

    NUMA = "numa"


def parts_of(amounts: Iterable[str], groups: Iterable[Any] = (), same: Same | None = None) -> dict[str, Any]:
    """Return the fields `resources`, `groups` and `same_subtree` of a request for these amounts (`VCPU=2`, `GPU=0.5`).

    `groups` are further ones, as REST takes them. Raises InvalidRequest.
    """
    texts = options.pairs("amount", amounts)
    gpus = _gpus(texts.pop(GPU)) if GPU in texts else []
    if unknown := [name for name in texts if not is_class(name)]:
        raise UnknownClass(unknown[0])  # before its unit is judged: `MEM=4Gi`
    resources = options.amounts(f"{name}={text}" for name, text in texts.items())
    if gpus and GPU_MEMORY in resources:
        memory = {GPU_MEMORY: resources.pop(GPU_MEMORY)}
        gpus = [gpu | memory for gpu in gpus]
    made = [{"name": group_name(number), "resources": gpu} for number, gpu in enumerate(gpus)]
    if same is None:
        return {"resources": resources, "groups": [*made, *groups], "same_subtree": []}
    made += [group for name in sorted(resources) if _is_device(name) for group in _devices(name, resources.pop(name))]
    return {"resources": resources, **_in_one_node([*made, *groups], same)}


def _gpus(text: str) -> list[dict[str, int]]:
    """Return the amounts of each GPU: of one for a share, and of as many as there are for a whole number."""
    if _WHOLE.match(text):
        return [{GPU_SHARES: WHOLE_GPU}] * _few(GPU, int(text))
    part = _PART.match(text)
    if part and (milli := int(part[1].ljust(3, "0"))):
        return [{GPU_SHARES: milli}]
    raise InvalidRequest(
        f"{GPU} must be a number of whole GPUs, such as 2, or a share of one, such as 0.5 or 0.125, not {text[:80]!r}"
    )


def _devices(name: str, amount: int) -> list[dict[str, Any]]:
    """Return a group for each device, as these may be pools of their own; one for a class that is measured."""
    pieces = [1] * _few(name, amount) if is_in_pieces(name) else [amount]
    word = name.removeprefix("CUSTOM_").lower()
    return [{"name": f"{word}{number}", "resources": {name: one}} for number, one in enumerate(pieces)]


def _few(name: str, count: int) -> int:
    if count > MAX_PARTS:
        raise InvalidRequest(f"{name}={count} would be {count} groups: a request has at most {MAX_PARTS}")
    return count


def _is_device(name: str) -> bool:
    return name not in OF_THE_HOST and not name.startswith(_HUGE_PAGES)


def _in_one_node(groups: list[Any], same: Same) -> dict[str, Any]:
    names = [group["name"] for group in groups if isinstance(group, Mapping) and "name" in group]
    if not names:
        raise InvalidRequest(f"--same {same} is about devices: give some, such as GPU=2, or a --group")
    node = {"name": NODE, "required": [NUMA_NODE]}
    return {"groups": [node, *groups], "same_subtree": [[NODE, *names]]}
