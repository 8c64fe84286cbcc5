"""Refuse a write that is based on an outdated state."""

from redsched.errors import PreconditionFailed
from redsched.model.conditions import ABSENT, IfMatch
from redsched.model.records.problems import PreconditionFacts
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult


def refuse_changed(answer: ScriptResult, what: str, if_match: IfMatch = None) -> ScriptResult:
    """Return a script's answer. Raises PreconditionFailed if the object did not meet its condition, `if_match`."""
    if answer.outcome is not Outcome.CHANGED:
        return answer
    if not answer.facts:
        raise PreconditionFailed(
            f"{what} does not exist, and the condition requires it to: declare it without the condition"
        )
    (tag,) = answer.facts
    if if_match is ABSENT:
        raise PreconditionFailed(
            f'{what} exists, with the tag "{tag}", and the condition requires that it does not: read it first',
            PreconditionFacts(tag=tag),
        )
    raise PreconditionFailed(
        f'{what} has the tag "{tag}": it has changed since it was read; read it again', PreconditionFacts(tag=tag)
    )
