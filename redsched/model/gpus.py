"""GPUs as people count them: `GPU=2` is short for two groups of a request, and texts about these say GPU again."""

from collections import Counter
from collections.abc import Iterable

from redsched.model.constraints import Group
from redsched.model.decision_note import ReasonCount
from redsched.model.request import Request
from redsched.model.workload import GPU_SHARES, WHOLE_GPU

GPU = "GPU"
"""Stands for GPU_SHARES on the command line, in GPUs and not in thousandths."""
NODE = "node"
"""The group without amounts that the NUMA node of `--same numa` is."""

SAME_NUMA = "same numa"


def group_name(number: int) -> str:
    """Return the name of the group that a GPU of the short form is, counted from 0."""
    return f"{GPU.lower()}{number}"


def gpus_of(request: Request) -> tuple[Group, ...]:
    """Return the groups that the short form makes: several whole GPUs, or one or a share of one; () without it."""
    found = tuple(group for group in request.groups if _number(group.name) is not None)
    if not found or [group.name for group in found] != [group_name(number) for number in range(len(found))]:
        return ()
    share = found[0].resources.get(GPU_SHARES, 0)
    if not 0 < share <= WHOLE_GPU or (len(found) > 1 and share != WHOLE_GPU):
        return ()
    is_short_form = all(group == Group(group.name, found[0].resources) for group in found)
    return found if is_short_form else ()


def share_a_node(request: Request, gpus: Iterable[Group]) -> bool:
    """Return whether these groups have to come from one NUMA node, and nothing else with them, as by `--same numa`."""
    return frozenset((NODE, *(group.name for group in gpus))) in request.same_subtree


def short_form(groups: Iterable[Group]) -> str:
    """Return what makes these groups, which `gpus_of` has returned: `GPU=2`, or `GPU=0.5`."""
    return f"{GPU}={count(sum(group.resources[GPU_SHARES] for group in groups))}"


def count(shares: float) -> str:
    """Return thousandths of GPUs as GPUs: `2`, or `0.5`."""
    return f"{shares / WHOLE_GPU:.15g}"


def lack_text(needs: int, free: int, total_free: int, capacity: int, place: str = "") -> str:
    """Return in words what a host lacks of GPUs, from shares: needed, free for them, free in all, and of how many.

    "needs 4 GPUs, 3 whole ones free (3.5 of 4 in all)". `place`: the one that they have to come from.
    """
    in_all = f"({count(total_free)} of {count(capacity)} in all)"
    if needs < WHOLE_GPU:
        return f"needs {count(needs)} of one GPU, which none has free {in_all}"
    where = f" in {place}" if place else ""
    return f"needs {amount_text(GPU_SHARES, needs)}, {free // WHOLE_GPU} whole ones free{where} {in_all}"


def amount_text(name: str, amount: int) -> str:
    """Return an amount of a class in words: "8 VCPU", or "4 GPUs" for GPU_SHARES."""
    if name != GPU_SHARES:
        return f"{amount} {name}"
    return f"{count(amount)} {GPU}{'s' if amount > WHOLE_GPU or not amount else ''}"


def in_words(request: Request, reasons: Iterable[ReasonCount]) -> tuple[ReasonCount, ...]:
    """Return counts of hosts by reason; if the request has the short form, with its words: `GPU`, and `same numa`."""
    gpus = gpus_of(request)
    if not gpus:
        return tuple(reasons)
    words = dict.fromkeys((f"group:{group.name}" for group in gpus), GPU) | {f"group:{NODE}": SAME_NUMA}
    if _only_gpus_compete(request, gpus):
        words["pools"] = f"numa:{GPU}" if share_a_node(request, gpus) else GPU
    total = Counter[str]()
    for one in reasons:
        total[words.get(one.reason, one.reason)] += one.hosts
    return tuple(ReasonCount(reason, hosts) for reason, hosts in total.items())


def word_of(request: Request, name: str) -> str:
    """Return the name of a check of a host, in the same words."""
    return in_words(request, [ReasonCount(name, 1)])[0].reason


def _only_gpus_compete(request: Request, gpus: tuple[Group, ...]) -> bool:
    """Return whether nothing but the number of GPUs can be wrong with pools that can give each part."""
    node = int(share_a_node(request, gpus))
    groups = len(request.groups) > len(gpus) + node or len(request.same_subtree) > node
    others = request.numa or request.pci or groups
    of_pools = request.required or request.forbidden or request.any_of or request.group_policy != "none"
    return not (others or of_pools or request.resources.keys() & gpus[0].resources.keys())


def _number(name: str) -> int | None:
    text = name.removeprefix(GPU.lower())
    return int(text) if text != name and text.isascii() and text.isdecimal() and len(text) < 4 else None
