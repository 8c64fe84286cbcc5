"""All steps of one host's placements, wired together."""

from redsched.agent.claims.context import LifecycleContext
from redsched.agent.claims.lifecycle import ClaimLifecycle
from redsched.agent.claims.local import LocalSteps
from redsched.agent.claims.resizing import ResizeSteps
from redsched.agent.claims.stopping import EndSteps
from redsched.agent.claims.work_ended import WorkEndedSteps


class ClaimSteps:
    """The steps of one host: `lifecycle` starts a placement, `ending` ends it, the others handle special cases."""

    def __init__(self, context: LifecycleContext) -> None:
        self.context = context
        self.ending = EndSteps(context)
        self.resizing = ResizeSteps(context, self.ending)
        self.lifecycle = ClaimLifecycle(context, self.ending, self.resizing)
        self.local = LocalSteps(context, self.ending)
        self.work_ended = WorkEndedSteps(context, self.ending, self.lifecycle)
