"""Plans over REST, and carrying out their moves."""

from collections.abc import AsyncIterator, Collection, Sequence

from redsched.cli.remote.base import Part, body_of
from redsched.client import operator_calls
from redsched.model import HostReport, Request
from redsched.scheduler import AddingPlan, Aim, AppliedMove, CapacityPlan, LeavingPlan, Move, RebalancePlan


class RemotePlans(Part):
    """As `Scheduler.plans`. The API limits the time of a plan."""

    async def capacity(self, request: Request, n_plus_one: str = "") -> CapacityPlan:
        """Return how many more of a request fit."""
        return await self.client.run(operator_calls.plan_capacity(request, n_plus_one))

    async def drain(self, hosts: Collection[str]) -> LeavingPlan:
        """Return where the claims of hosts would go in a drain."""
        return await self.client.run(operator_calls.plan_drain(hosts))

    async def without(self, hosts: Collection[str]) -> LeavingPlan:
        """Return where they would go if the hosts died."""
        return await self.client.run(operator_calls.plan_without(hosts))

    async def with_hosts(self, reports: Sequence[HostReport], request: Request | None = None) -> AddingPlan:
        """Return what further hosts would change."""
        hosts = [{"name": one.name, **body_of(one)} for one in reports]
        return await self.client.run(operator_calls.plan_with(hosts, request))

    async def rebalance(
        self, aim: Aim, max_moves: int, request: Request | None, hosts: Collection[str], policy: str
    ) -> RebalancePlan:
        """Return moves for an aim."""
        call = operator_calls.plan_rebalance(aim.value, max_moves, request, hosts, policy)
        return await self.client.run(call)


class RemoteMoves(Part):
    """As `Scheduler.move_runner`."""

    async def run(self, moves: Sequence[Move], timeout_s: int) -> AsyncIterator[AppliedMove]:
        """Make moves one after the other, and yield each; the first with a problem ends the rest.

        Each is a call of its own: no proxy has to wait for all of them, and the caller sees each at once.
        """
        for one in moves:
            body = {"claim_id": one.claim_id, "token": one.token, "source": one.source, "target": one.target}
            done = (await self.client.run(operator_calls.apply_moves([body], timeout_s))).moves[0]
            yield done
            if done.problem:
                return
