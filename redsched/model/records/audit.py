"""Audits: what was checked, and the problems that were found."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field, computed_field


class RepairKind(StrEnum):
    """The repair that fixes a problem."""

    HOST = "host"
    """Recompute a host's counters and its set of claims."""
    ENDING = "ending"
    """End a claim that waits for a host that was written off to stop its work."""
    GONE_HOST = "gone-host"
    """Delete what a removed host left behind."""
    MEMBERS = "members"
    """Count the members of server groups on a host by its zone and labels."""
    COUNTS = "counts"
    """Recompute the counters of a server group, shared pool or quota."""
    DUE = "due"
    """Recompute the deadlines and reconciliation times of claims, and which ended ones are kept."""
    GANG = "gang"
    """Recompute which members a gang waits for."""
    TWO_CELLS = "two-cells"
    """Release the claims of an id in all cells but one."""
    TWO_HOMES = "two-homes"
    """Disable the hosts with a name in all cells but one."""
    CACHE = "cache"
    """Reload this scheduler's replica."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A violated invariant, by its number in docs/architecture.md: where, the value found and the value expected."""

    invariant: int
    cell: str
    thing: Annotated[str, Field(description="The host, claim or declared object that it is about.")]
    what: str
    found: str
    should: str
    repair: Annotated[RepairKind | None, Field(exclude=True)] = None
    """What fixes it, applied to `subject`; None if no automatic repair is allowed."""
    subject: Annotated[str, Field(exclude=True)] = ""
    advice: Annotated[str, Field(description="For the operator; empty where there is none.")] = ""
    repaired: bool = False

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorator on a property
    @property
    def detail(self) -> str:
        """The problem in one line."""
        return f"{self.what}: {self.found}, and should be {self.should}"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an audit: the hosts and claims checked, and the problems found."""

    hosts: int
    claims: int
    problems: tuple[Problem, ...]
    over: Annotated[tuple[str, ...], Field(exclude=True)] = ()
    """Hosts, and pools as `pool:licences`, that legitimately exceed their capacity."""
    broken_rules: Annotated[
        tuple[str, ...],
        Field(description="Server groups with members where their hard policy does not allow them, and where."),
    ] = ()

    @property
    def broken(self) -> tuple[Problem, ...]:
        """The problems that were not repaired."""
        return tuple(one for one in self.problems if not one.repaired)
