"""Plans on an exported cell, in this process, without a store."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from redsched.decide.plugins.registry import plugin_registry
from redsched.errors import InvalidRequest, NotFound, RedschedError
from redsched.model import HostReport, Request
from redsched.model.records.plans import AddingPlan, Aim, CapacityPlan, LeavingPlan, RebalancePlan
from redsched.model.validation import check_topology
from redsched.scheduler.backup.archive import Archive
from redsched.scheduler.plans.archived import copy_of
from redsched.scheduler.plans.cell_copy import CellCopy
from redsched.scheduler.plans.questions import (
    AddingQuestion,
    CapacityQuestion,
    LeavingQuestion,
    answer,
    times_within,
)
from redsched.scheduler.plans.rebalancing import RebalanceQuestion, VerifyQuestion, check_aim
from redsched.scheduler.plans.relocation import with_hints
from redsched.scheduler.quotas.usage import usage_of
from redsched.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArchivePlans:
    """Answers what would happen to an exported cell, as `PlanService` does for running ones, within `limit_s` each."""

    archive: Archive
    settings: Settings
    limit_s: float

    def capacity(self, request: Request, n_plus_one: str = "") -> CapacityPlan:
        """Return how many more of a request fit. Raises NotFound, InvalidRequest."""
        if n_plus_one:
            check_topology(n_plus_one)
        found = self._ask(CapacityQuestion(self._resolved(request), n_plus_one))
        return replace(found, quota=self._quota(request))

    def drain(self, hosts: Collection[str]) -> LeavingPlan:
        """Return where the claims of hosts would go if these were drained with moves. Raises NotFound, TooHard."""
        return self._ask(LeavingQuestion(sorted(set(hosts)), gone=False))

    def without(self, hosts: Collection[str]) -> LeavingPlan:
        """Return where the claims of hosts would go if these died. Raises NotFound, TooHard."""
        return self._ask(LeavingQuestion(sorted(set(hosts)), gone=True))

    def with_hosts(self, reports: Sequence[HostReport], request: Request | None = None) -> AddingPlan:
        """Return what further hosts would change. Raises NotFound, InvalidRequest, TooHard."""
        if other := next((one.cell for one in reports if one.cell != self.archive.head.cell), ""):
            raise InvalidRequest(f"a host is in cell {other!r}, and the export is of {self.archive.head.cell!r}")
        return self._ask(AddingQuestion(reports, request if request is None else self._resolved(request)))

    def rebalance(
        self, aim: Aim, max_moves: int, request: Request | None = None, hosts: Collection[str] = (), policy: str = ""
    ) -> RebalancePlan:
        """Return moves that reach an aim, verified on another copy. Raises NotFound, InvalidRequest, TooHard."""
        check_aim(aim, request, hosts, policy)
        if unknown := sorted(set(hosts) - {one.name for one in self.archive.hosts}):
            raise NotFound(f"there is no host {unknown[0]!r} in cell {self.archive.head.cell}")
        asked = None if request is None else self._resolved(request)
        question = RebalanceQuestion(aim, max_moves, asked, sorted(set(hosts)), policy or self.settings.policy)
        return self._ask(VerifyQuestion(question, self._ask(question)))

    def _ask(self, question: Callable[[CellCopy], T]) -> T:
        found = answer(self._copy, question, self.limit_s)
        if isinstance(found, RedschedError):
            raise found
        return found

    def _copy(self) -> CellCopy:
        return copy_of(self.archive, self.settings, plugin_registry(self.settings))

    def _resolved(self, request: Request) -> Request:
        return with_hints(request, self._copy().claims) if _has_hints(request) else request

    def _quota(self, request: Request) -> int | None:
        quota = next((one for one in self.archive.quotas if one.project == request.project), None)
        if quota is None:
            return None
        used = Counter[str]()
        for fields in self.archive.claims.values():
            if fields.get("project") == request.project and fields["state"] != "ended":
                used.update(usage_of(fields))
        return times_within(quota.limits, used, request)


def _has_hints(request: Request) -> bool:
    parts = (request, *(one.request for one in request.members))
    return any(one.hints.same_host or one.hints.different_host for one in parts)
