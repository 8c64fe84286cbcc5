"""Responses about quotas and usage."""

from typing import Annotated

from pydantic import Field

from redsched.scheduler import Exceeded, Page, QuotaView, UsageRow
from redsched.schema.answer import Answer, From
from redsched.schema.responses.problems import Problem


def _used(quota: QuotaView) -> dict[str, int]:
    """Return the usage by class, with 0 for limited classes that are not used."""
    return dict(sorted({**dict.fromkeys(quota.limits, 0), **quota.used}.items()))


class QuotaAnswer(Answer, shows=QuotaView):
    """A project's quota and the usage of its claims."""

    project: str
    limits: Annotated[dict[str, int], Field(description="Limits by class; `claims` limits their number.")]
    used: Annotated[
        dict[str, int],
        From(_used, "used"),
        Field(description="Usage by class, including classes without a limit; `claims` is their number."),
    ]


class QuotasAnswer(Answer, shows=Page):
    """A page of quotas. `next` is the `after` of the next page, null on the last one."""

    quotas: Annotated[list[QuotaAnswer], From("items")]
    next: str | None


class ExceededAnswer(Answer, shows=Exceeded):
    """A limit that the request would exceed: used + asked > limit, where `asked` is the requested amount."""

    resource: str
    limit: int
    used: int
    asked: int


class QuotaProblem(Problem):
    """403: the project's quota does not allow the request."""

    project: str | None = None
    exceeded: list[ExceededAnswer] | None = None


class UsageRowAnswer(Answer, shows=UsageRow):
    """The usage of a group of claims; `zone` and `project` are present if they were requested."""

    zone: Annotated[str | None, From(lambda row: row.of.get("zone")), Field(description="Zone of their hosts.")] = None
    project: Annotated[
        str | None,
        From(lambda row: row.of.get("project")),
        Field(description="Their project. Empty: claims without a project."),
    ] = None
    used: Annotated[
        dict[str, int], Field(description="Usage by class, if requested; `claims` is the number of claims.")
    ]


class UsageAnswer(Answer):
    """Usage, with a row for each combination of keys that occurs, sorted."""

    usage: Annotated[list[UsageRowAnswer], From(lambda rows: [UsageRowAnswer.of(row) for row in rows])]
