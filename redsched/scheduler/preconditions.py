"""Refuse a write that is based on an outdated state."""

from redsched.errors import PreconditionFailed
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ScriptResult


def refuse_changed(answer: ScriptResult, what: str) -> ScriptResult:
    """Return a script's answer. Raises PreconditionFailed if the object has none of the given tags."""
    if answer.outcome is not Outcome.CHANGED:
        return answer
    if not answer.facts:
        raise PreconditionFailed(
            f"{what} does not exist, and the condition requires it to: declare it without the condition"
        )
    (tag,) = answer.facts
    raise PreconditionFailed(
        f'{what} has the tag "{tag}": it has changed since it was read; read it again', {"tag": tag}
    )
