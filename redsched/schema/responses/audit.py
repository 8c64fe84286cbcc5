"""The response of `redsched audit --json`. The API has no audit."""

from typing import Annotated

from pydantic import Field

from redsched.scheduler import AuditReport, Problem
from redsched.schema.answer import Answer


class AuditProblemAnswer(Answer, shows=Problem):
    """A violated invariant, by its number in docs/architecture.md."""

    invariant: int
    cell: str
    what: str
    thing: Annotated[str, Field(description="The host, claim or declared object that it is about.")]
    found: str
    should: str
    detail: Annotated[str, Field(description="The problem in one line.")]
    repaired: bool
    advice: Annotated[str, Field(description="For the operator; empty where there is none.")]


class AuditAnswer(Answer, shows=AuditReport):
    """The result of an audit: the hosts and claims checked, and the problems found."""

    hosts: int
    claims: int
    problems: list[AuditProblemAnswer]
    broken_rules: Annotated[
        list[str],
        Field(description="Server groups with members where their hard policy does not allow them, and where."),
    ]
