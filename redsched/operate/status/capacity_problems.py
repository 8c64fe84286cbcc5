"""Hosts and shared pools that have less than their claims hold, or of which nothing can ever be claimed."""

from collections.abc import Iterator, Mapping, Sequence

from redsched.model.records.status import StatusProblem
from redsched.operate.status.facts import CellFacts
from redsched.store.codec.keys import Kind
from redsched.wording import counted, problem_about

MAX_SLOTS = 3
"""How many slots of a host or pool are named."""
MAX_OBJECTS = 5
"""Of how many hosts or pools."""

Slots = Mapping[str, Sequence[str]]
"""What is said of slots, by the key of a host or pool."""


def over_capacity(cell: str, facts: CellFacts) -> Iterator[StatusProblem]:
    """Find hosts and shared pools whose claims hold more than their capacity."""
    hosts = _named(facts.over, Kind.HOST)
    if hosts:
        (have, whose), which = _have(hosts, "host"), _what(facts.over, Kind.HOST, hosts)
        yield problem_about(
            "over-capacity",
            cell,
            hosts,
            f"{have} less than {whose} claims hold, and may not be able to run them: {which}",
            "repair the host, or release or move claims until the others fit; it gets no new ones of what it lacks",
            (f"redsched host show {hosts[0]}",),
        )
    pools = _named(facts.over, Kind.POOL)
    if pools:
        have, whose = _have(pools, "shared pool")
        yield problem_about(
            "pool-over-capacity",
            cell,
            pools,
            f"{have} less than {whose} claims hold: {_what(facts.over, Kind.POOL, pools)}",
            "declare what there is, or release claims until the others fit; nothing more of it is claimed",
            (f"redsched shared-pool show {pools[0]}",),
        )


def unusable(cell: str, facts: CellFacts) -> Iterator[StatusProblem]:
    """Find hosts and shared pools with an inventory of which nothing can ever be claimed."""
    for kind, name, what, advice, command in (
        (Kind.HOST, "unusable", "host", "correct what it reports, such as REDSCHED_RESERVED_MEMORY_MB", "host"),
        (Kind.POOL, "pool-unusable", "shared pool", "declare it again with other numbers", "shared-pool"),
    ):
        found = _named(facts.unusable, kind)
        if found:
            yield problem_about(
                name,
                cell,
                found,
                f"of {counted(len(found), what)}, nothing of some inventory can ever be claimed: "
                f"{_what(facts.unusable, kind, found)}",
                advice,
                (f"redsched {command} show {found[0]}",),
            )


def _named(found: Slots, kind: Kind) -> list[str]:
    return sorted(key.partition(":")[2] for key in found if key.startswith(f"{kind}:"))


def _have(names: list[str], what: str) -> tuple[str, str]:
    """Return the number of things with its verb, and the word for whose claims they are."""
    number = counted(len(names), what)
    return (f"{number} has", "its") if len(names) == 1 else (f"{number} have", "their")


def _what(found: Slots, kind: Kind, names: list[str]) -> str:
    """Return the first hosts or pools, each with the first of these slots."""
    texts = list[str]()
    for name in names[:MAX_OBJECTS]:
        slots = found[f"{kind}:{name}"]
        more = f" and {len(slots) - MAX_SLOTS} more" if len(slots) > MAX_SLOTS else ""
        texts.append(f"{name} ({', '.join(slots[:MAX_SLOTS])}{more})")
    return ", ".join(texts) + (f" and {len(names) - MAX_OBJECTS} more" if len(names) > MAX_OBJECTS else "")
