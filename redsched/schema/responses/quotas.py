"""Quotas, and what claims use."""

from typing import Annotated

from pydantic import Field

from redsched.scheduler import QuotaView
from redsched.schema.answer import Answer, From
from redsched.schema.responses.problems import Problem
from redsched.schema.types import Amounts


def _used(quota: QuotaView) -> dict[str, int]:
    """What is used; of what is limited also that it is nothing."""
    return dict(sorted({**dict.fromkeys(quota.limits, 0), **quota.used}.items()))


class QuotaAnswer(Answer, shows=QuotaView):
    """A project's quota, and what its claims use of it and besides."""

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
    """What would exceed a quota: used + asked > limit."""

    resource: str
    limit: int
    used: int
    asked: int


class QuotaProblem(Problem):
    """403 of a project whose quota does not allow it."""

    project: str | None = None
    exceeded: list[ExceededAnswer] | None = None


class UsageRowAnswer(Answer):
    """What claims use together; `zone` and `project` are there where they were asked for."""

    used: Annotated[Amounts, Field(description="By class, where that was asked for; `claims`: how many.")]
    zone: Annotated[str | None, Field(description="Of their hosts.")] = None
    project: Annotated[str | None, Field(description="Empty: of none.")] = None


class UsageAnswer(Answer):
    """A row for each combination that there is, in order."""

    usage: list[UsageRowAnswer]
