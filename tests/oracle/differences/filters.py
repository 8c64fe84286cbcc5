"""Differences in verdicts of filters, each with the cases that it explains.

The tests fail if a recorded verdict differs and no difference here explains it, or if a difference here no longer
explains any.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.oracle.cases.filters import Block, Host, Spec

Applies = Callable[[Block, Spec, Host], bool]

PASSED, FAILED = "passed by Nova only", "passed by redsched only"


@dataclass(frozen=True)
class Difference:
    """A difference: the filters it concerns, which side passes the host, the cases, and where it is documented.

    `says` is a text of docs/`page`.
    """

    name: str
    filters: tuple[str, ...]
    sides: tuple[str, ...]
    applies: Applies
    page: str
    says: str


def side_of(novas: str, ours: str) -> str | None:
    """Return which of both passes a host, None if they agree. An error or an invalid request passes none.

    So a host that redsched refuses agrees with an error of Nova; docs/comparison.md has their number.
    """
    passes = novas == "1", ours == "1"
    if passes[0] == passes[1]:
        return None
    return PASSED if passes[0] else FAILED


def explains(difference: Difference, block: Block, spec: Spec, host: Host, side: str) -> bool:
    """Return whether a difference explains that one side alone passes a host."""
    return block.filter in difference.filters and side in difference.sides and difference.applies(block, spec, host)


def _conditions(spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield the operator and the operand of each condition on extra specs."""
    for text in spec.get("extra", {}).values():
        found = re.match(r"(<[a-z-]+>|s?[=!<>]=|s?[<>]|=)(.*)", text)
        yield (found[1], found[2]) if found else ("", text)


def _some(test: Callable[[str, str], bool]) -> Applies:
    return lambda _block, spec, _host: any(test(*one) for one in _conditions(spec))


def _of_words(operator: str, operand: str) -> bool:
    several = any(" " in one.strip() for one in operand.split("<or>"))
    return several and operator not in ("", "<all-in>", "<range-in>")


def _numbers_of(block: Block, host: Host) -> list[str]:
    mine = (block.aggregates[name] for name in host.get("aggregates", ()))
    return [text for one in mine for key, text in one.items() if key.endswith("_per_host")]


def _is_false(block: Block, spec: Spec, host: Host) -> bool:
    listed = {key for name in host["aggregates"] for key in block.aggregates[name]}
    return any(spec["image"].get(key) == "False" for key in listed)


def _queries(query: Any) -> Iterator[list[Any]]:
    if isinstance(query, list):
        yield query
        for one in query[1:]:
            yield from _queries(one)


def _nested_not(_block: Block, spec: Spec, _host: Host) -> bool:
    inner = (one for outer in _queries(spec["hints"]["query"]) for one in outer[1:])
    return any(isinstance(one, list) and one[0] == "not" for one in inner)


def _lacks_variable(_block: Block, spec: Spec, host: Host) -> bool:
    stats: Host = host.get("stats", {})
    used = {one for query in _queries(spec["hints"]["query"]) for one in query[1:] if isinstance(one, str)}
    return "$stats.rack" in used and "rack" not in stats


def _ordinary_pages(_block: Block, spec: Spec, host: Host) -> bool:
    is_ordinary = spec["numa"].get("page_kb") in (None, 4)
    return is_ordinary and any("pages" in node for node in host["numa"])


def _requires_threads(_block: Block, spec: Spec, _host: Host) -> bool:
    return bool(spec["numa"].get("thread_policy") == "require")


EXTRA_SPECS = ("ComputeCapabilitiesFilter", "AggregateInstanceExtraSpecsFilter")
COUNTS = ("AggregateNumInstancesFilter", "AggregateIoOpsFilter")
NUMA = ("NUMATopologyFilter",)
BOTH = (PASSED, FAILED)

DIFFERENCES = (
    Difference(
        "operands of several words",
        EXTRA_SPECS,
        BOTH,
        _some(_of_words),
        "constraints.md",
        "only the word after the operator counts",
    ),
    Difference(
        "operators without a space",
        EXTRA_SPECS,
        (FAILED,),
        _some(lambda operator, operand: operator != "" and operand[:1] not in ("", " ")),
        "constraints.md",
        "no operator, but a text, compared with the whole value",
    ),
    Difference(
        "operators that Nova does not have",
        EXTRA_SPECS,
        (FAILED,),
        _some(lambda operator, _: operator in ("<", ">", "<range-in>")),
        "constraints.md",
        "no operators, but texts, compared with the whole value",
    ),
    Difference(
        "infinite numbers",
        EXTRA_SPECS,
        (PASSED,),
        _some(lambda _, operand: operand.strip() in ("inf", "nan")),
        "constraints.md",
        "| `inf` and `nan` | numbers | not numbers |",
    ),
    Difference(
        "parts of words",
        EXTRA_SPECS,
        (PASSED,),
        _some(lambda operator, _: operator == "<all-in>"),
        "constraints.md",
        "each word occurs somewhere in the value, also within a word",
    ),
    Difference(
        "all words of a list",
        EXTRA_SPECS[1:],
        (FAILED,),
        _some(lambda operator, operand: operator == "<all-in>" and " " in operand.strip()),
        "constraints.md",
        "in metadata of aggregates in one item, so two words never match `aes,mmx`",
    ),
    Difference(
        "values that are not numbers",
        EXTRA_SPECS,
        (FAILED,),
        _some(lambda operator, _: operator in ("=", "==", "!=", ">=", "<=")),
        "constraints.md",
        "an error while the hosts are filtered",
    ),
    Difference(
        "unreadable limits",
        COUNTS,
        (PASSED,),
        lambda block, _, host: any(not one.isdecimal() for one in _numbers_of(block, host)),
        "comparison.md",
        "With a number that cannot be read, the hosts accept nothing; Nova falls back to its setting.",
    ),
    Difference(
        "limits of 0",
        COUNTS,
        (FAILED,),
        lambda block, _, host: "0" in _numbers_of(block, host),
        "comparison.md",
        "0 is no limit.",
    ),
    Difference(
        "properties that are false",
        ("AggregateImagePropertiesIsolation",),
        (PASSED,),
        _is_false,
        "comparison.md",
        "Nova also passes a property that is false, whatever the aggregate lists.",
    ),
    Difference(
        "unknown versions",
        ("ImagePropertiesFilter",),
        (PASSED,),
        lambda _, spec, host: "img_hv_requested_version" in spec["image"] and not host["hypervisor_version"],
        "comparison.md",
        "Nova accepts a host that reports no version.",
    ),
    Difference(
        "affinity groups that are apart",
        ("ServerGroupAffinityFilter",),
        (PASSED,),
        lambda block, _, host: sum(bool(one.get("members")) for one in block.hosts) > 1 and bool(host["members"]),
        "comparison.md",
        "If members are apart nevertheless, Nova accepts each of their hosts, redsched none.",
    ),
    Difference(
        "prefixes without a slash",
        ("SimpleCIDRAffinityFilter",),
        (FAILED,),
        lambda _, spec, __: not spec["hints"].get("cidr", "/").startswith("/"),
        "comparison.md",
        "`cidr` may lack its slash, which is an error in Nova.",
    ),
    Difference(
        "nested not",
        ("JsonFilter",),
        BOTH,
        _nested_not,
        "comparison.md",
        "`not` inside `and` works as expected.",
    ),
    Difference(
        "missing variables",
        ("JsonFilter",),
        BOTH,
        _lacks_variable,
        "comparison.md",
        "A comparison with a value that the host lacks is false; Nova skips the comparison.",
    ),
    Difference(
        "order of cells",
        NUMA,
        (FAILED,),
        lambda _, spec, __: len(spec["numa"]["cells"]) > 1,
        "comparison.md",
        "Nova may refuse a guest in one order of its cells and accept it in another.",
    ),
    Difference(
        "ordinary memory in huge pages",
        NUMA,
        (PASSED,),
        _ordinary_pages,
        "comparison.md",
        "The memory of huge pages is not available to guests without them",
    ),
    Difference(
        "siblings that are free",
        NUMA,
        (FAILED,),
        _requires_threads,
        "comparison.md",
        "Nova's `require` also checks that sibling threads are free",
    ),
)
