"""Responses about quotas and usage."""

from typing import Annotated

from pydantic import Field

from redsched.scheduler import QuotaView
from redsched.schema.answer import Answer, From
from redsched.schema.responses.problems import Problem
from redsched.schema.types import Amounts


def _used(quota: QuotaView) -> dict[str, int]:
    """Return the usage by class, with 0 for limited classes that are not used."""
    return dict(sorted({**dict.fromkeys(quota.limits, 0), **quota.used}.items()))


class QuotaAnswer(Answer, shows=QuotaView):
    """A project's quota, and the usage of its claims, also of classes without a limit."""

    project: str
    limits: Annotated[Amounts, Field(description="By class; `claims`: how many.")]
    used: Annotated[
        Amounts, From(_used), Field(description="By class, also of classes without a limit; `claims`: how many.")
    ]


class QuotasAnswer(Answer):
    """A page of quotas; `next` is the `after` of the next page, null on the last."""

    quotas: list[QuotaAnswer]
    next: str | None


class ExceededAnswer(Answer):
    """A limit that the request would exceed: used + asked > limit."""

    resource: str
    limit: int
    used: int
    asked: int


class QuotaProblem(Problem):
    """403: the project's quota does not allow the request."""

    project: str | None = None
    exceeded: list[ExceededAnswer] | None = None


class UsageRowAnswer(Answer):
    """The usage of a group of claims; `zone` and `project` are present if they were requested."""

    used: Annotated[Amounts, Field(description="By class, where that was asked for; `claims`: how many.")]
    zone: Annotated[str | None, Field(description="Of their hosts.")] = None
    project: Annotated[str | None, Field(description="Empty: of none.")] = None


class UsageAnswer(Answer):
    """A row for each combination that occurs, in order."""

    usage: list[UsageRowAnswer]
