"""Responses about quotas and usage."""

from redsched.scheduler import Exceeded
from redsched.schema.responses.problems import Problem


class QuotaProblem(Problem):
    """403: the project's quota does not allow the request."""

    project: str | None = None
    exceeded: list[Exceeded] | None = None
