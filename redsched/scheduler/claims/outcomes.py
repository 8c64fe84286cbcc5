"""Map a script's outcome for a claim to success or an error."""

from redsched.errors import ClaimState, NotFound, Settling, StaleToken
from redsched.model import Claim, ClaimStatus
from redsched.model.records.problems import ClaimStateFacts
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult

_DONE = (Outcome.OK, Outcome.ALREADY_DONE)


def check_outcome(claim: Claim, answer: ScriptResult, ending: bool = False) -> ScriptResult:
    """Return the answer if the call succeeded, now or earlier; with `ending`, also if the claim is ending.

    Raises NotFound, ClaimState, StaleToken, Settling.
    """
    outcome = answer.outcome
    if outcome in _DONE or (ending and outcome is Outcome.ENDING):
        return answer
    if outcome is Outcome.NOT_ATTESTED:
        raise Settling(f"host {claim.host} of claim {claim.claim_id} has not attested to the new epoch yet: try again")
    if outcome is Outcome.STALE:
        raise stale(claim)
    if outcome is Outcome.UNKNOWN:
        raise NotFound(f"claim {claim.claim_id!r} no longer exists")
    if outcome is Outcome.MOVING:
        raise ClaimState(
            f"claim {claim.claim_id} is being placed elsewhere: wait until it has only one placement",
            ClaimStateFacts(claim_id=claim.claim_id, state=claim.state),
        )
    state = "is ending" if outcome is Outcome.ENDING else "has ended"
    if claim.state is ClaimStatus.PENDING:
        state = "is pending"
    raise ClaimState(f"claim {claim.claim_id} {state}: it can only be released", ClaimStateFacts(state=claim.state))


def stale(claim: Claim) -> StaleToken:
    """Return the error for a token that is not the claim's."""
    return StaleToken(
        f"the token is not that of the latest placement of claim {claim.claim_id}: read the claim, and use its token"
    )
