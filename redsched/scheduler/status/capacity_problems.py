"""Hosts and shared pools that have less than their claims hold."""

from collections.abc import Iterator

from redsched.scheduler.status.facts import CellFacts
from redsched.scheduler.status.results import StatusProblem, counted, problem_about
from redsched.store.codec.keys import Kind

MAX_SLOTS = 3
"""How many slots of a host or pool are named."""
MAX_OBJECTS = 5
"""Of how many hosts or pools."""


def over_capacity(cell: str, facts: CellFacts) -> Iterator[StatusProblem]:
    """Find hosts and shared pools whose claims hold more than their capacity."""
    hosts = _named(facts, Kind.HOST)
    if hosts:
        have, whose = _have(hosts, "host")
        yield problem_about(
            "over-capacity",
            cell,
            hosts,
            f"{have} less than {whose} claims hold, and may not be able to run them: {_what(facts, Kind.HOST, hosts)}",
            "repair the host, or release or move claims until the others fit; it gets no new ones of what it lacks",
            (f"redsched host show {hosts[0]}",),
        )
    pools = _named(facts, Kind.POOL)
    if pools:
        have, whose = _have(pools, "shared pool")
        yield problem_about(
            "pool-over-capacity",
            cell,
            pools,
            f"{have} less than {whose} claims hold: {_what(facts, Kind.POOL, pools)}",
            "declare what there is, or release claims until the others fit; nothing more of it is claimed",
            (f"redsched shared-pool show {pools[0]}",),
        )


def _named(facts: CellFacts, kind: Kind) -> list[str]:
    return sorted(key.partition(":")[2] for key in facts.over if key.startswith(f"{kind}:"))


def _have(names: list[str], what: str) -> tuple[str, str]:
    """Return the number of things with its verb, and the word for whose claims they are."""
    number = counted(len(names), what)
    return (f"{number} has", "its") if len(names) == 1 else (f"{number} have", "their")


def _what(facts: CellFacts, kind: Kind, names: list[str]) -> str:
    """Return the first hosts or pools, each with the first slots of which it lacks some."""
    texts = list[str]()
    for name in names[:MAX_OBJECTS]:
        slots = facts.over[f"{kind}:{name}"]
        more = f" and {len(slots) - MAX_SLOTS} more" if len(slots) > MAX_SLOTS else ""
        texts.append(f"{name} ({', '.join(slots[:MAX_SLOTS])}{more})")
    return ", ".join(texts) + (f" and {len(names) - MAX_OBJECTS} more" if len(names) > MAX_OBJECTS else "")
