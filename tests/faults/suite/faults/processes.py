"""Processes that are killed at the worst moments: between one step and the next.

A point is `<script>-comes` (before the store gets the call), `<script>-has-run` (before the process gets the reply) or
`<script>-answered`; at the machines' hook `start-comes`, `start-done` and so on; `any` is any time.
"""

from redsched.store.client.scripts import load_all
from tests.faults.suite.faults.base import Breakage, take_out
from tests.faults.suite.plan import Shape, Strike
from tests.faults.suite.stores.wires import Look, Play
from tests.faults.suite.world import World
from tests.support.processes.proxy import Fault, Moment

HOOK = ("start-comes", "start-done", "stop-comes", "stop-done")


class _Kill(Breakage):
    """Each victim is killed once, at the point, and restarted as by a service manager."""

    def __init__(self, world: World, strike: Strike) -> None:
        super().__init__(world, strike)
        self._waits: dict[str, tuple[Play, Look]] = {}

    async def start(self) -> None:
        """Kill now, or wait for the point."""
        self._left = set(self.strike.victims)
        if self.strike.point == "any":
            for name in self.strike.victims:
                self._strike(name)
        elif self.strike.point in HOOK:
            self.world.hook_looks.append(self._at_hook)
        else:
            script, _, moment = self.strike.point.partition("-")
            self._sha, self._moment = load_all()[script].sha.encode(), Moment(moment)
            self._waits = {name: self._waiting(name) for name in self.strike.victims}
            for name, (play, look) in self._waits.items():
                for wire in self.world.site.wires[name]:
                    wire.plays.append(play)
                    wire.looks.append(look)

    async def heal(self) -> None:
        """Stop waiting for the point, and wait until all processes are at work again."""
        if self.strike.point in HOOK:
            take_out(self.world.hook_looks, self._at_hook)
        elif self.strike.point != "any":
            for name, (play, look) in self._waits.items():
                for wire in self.world.site.wires[name]:
                    take_out(wire.plays, play)
                    take_out(wire.looks, look)
        for victim in self.victims():
            await self.world.revived(victim)

    def _waiting(self, name: str) -> tuple[Play, Look]:
        def play(command: list[bytes]) -> Fault:
            if self._moment is Moment.COMES and self._is_it(command) and self._strike(name):
                return Fault.LOSE_REQUEST
            return Fault.NONE

        def look(moment: Moment, command: list[bytes]) -> None:
            if moment is self._moment is not Moment.COMES and self._is_it(command):
                self._strike(name)

        return play, look

    def _is_it(self, command: list[bytes]) -> bool:
        return len(command) > 1 and command[1] == self._sha

    def _at_hook(self, what: str, agent: str) -> None:
        if what == self.strike.point:
            self._strike(agent)

    def _strike(self, name: str) -> bool:
        if name not in self._left:
            return False
        self._left.remove(name)
        self.world.children[name].kill()
        return True


class KillScheduler(_Kill):
    """Between claim and reply, and between the end of a claim and the reply."""

    shape = Shape(
        "kill-scheduler",
        on="scheduler",
        most_victims=2,
        points=(
            "any",
            "claim-comes",
            "claim-has-run",
            "release-comes",
            "release-has-run",
            "fail-has-run",
            "reconcile-has-run",
        ),
        seconds=(0.5, 1.0),
    )


class KillAgent(_Kill):
    """Between inbox, journal, hook and confirm, and between the end of the work and the report of it."""

    shape = Shape(
        "kill-agent",
        on="agent",
        most_victims=2,
        points=(
            "any",
            "inbox-has-run",
            "accept-comes",
            "accept-has-run",
            *HOOK,
            "confirm-comes",
            "confirm-has-run",
            "gone-comes",
            "gone-has-run",
        ),
        seconds=(0.5, 1.0),
    )
    holds_agents_up = True


class Kill(_Kill):
    """Processes of any kind are killed at any time, on any set-up."""

    shape = Shape("kill", ("cluster", "sentinel", "single"), on="any", most_victims=4, points=("any",))
    holds_agents_up = True


class KillAttesting(KillAgent):
    """Hosts have to attest again, and their agents are killed during the attestation."""

    shape = Shape(
        "kill-attesting",
        on="agent",
        most_victims=3,
        points=("report-has-run", "attest-comes", "attest-has-run"),
        seconds=(1.0, 1.5),
    )
    loses = frozenset({"forgotten"})

    async def start(self) -> None:
        """Wait for the point, and wipe the store."""
        await super().start()
        await self.single.once_there(self.single.wipe)


ALL = (KillScheduler, KillAgent, Kill, KillAttesting)
