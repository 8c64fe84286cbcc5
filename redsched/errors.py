"""Every error that redsched raises, and nothing else.

    RedschedError                     problem type          HTTP  exit
    |-- InvalidRequest                invalid-request        422     2   what was asked is malformed
    |-- ClaimIdReused                 claim-id-reused        422     2   the id belongs to other content
    |-- Conflict
    |   |-- NoValidHost               no-valid-host          409     3   nothing fits, with the reasons
    |   |-- ClaimState                claim-state            409     3   the claim or host is not in a state for this
    |   |-- StaleToken                stale-token            409     3   the claim was placed anew since
    |   |-- OtherAgent                other-agent            409     3   another agent speaks for this host
    |   |-- PreconditionFailed        precondition-failed    412     3   it was changed since it was read
    |   `-- NotConfirmed              not-confirmed          504     3   no host confirmed it in time: it was undone
    |-- QuotaExceeded                 quota-exceeded         403     3   the project's quota does not allow it
    |-- NotFound                       not-found              404     4   no such host, claim, cell
    |-- PluginError                 internal-error         500     1   a filter or weigher of one's own failed
    `-- Unavailable                                          503     5   try again
        |-- StoreUnavailable          store-unavailable      503     5   the store cannot be reached or used
        |-- Settling                  settling               503     5   the store forgot; hosts are attesting anew
        |-- SchemaMismatch              wrong-release          503     5   another release of redsched rules the store
        |-- NotDurable                not-durable            503     5   done, and on too few replicas or disks
        `-- OutcomeUnknown            outcome-unknown        503     5   sent, and no answer: send it again by its id

Each message says what was wrong, the value seen and what to do. `facts` are the numbers behind it, for programs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class RedschedError(Exception):
    """The root of the tree: `problem` is the last part of the REST problem type, `status` its HTTP status."""

    problem: ClassVar[str] = "internal-error"
    title: ClassVar[str] = "Internal error"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, detail: str, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.facts: Mapping[str, Any] = facts or {}


class InvalidRequest(RedschedError, ValueError):
    """What was asked is malformed. Also a ValueError, so that pydantic's validators may raise it as it is."""

    problem, title, status, exit_code = "invalid-request", "The request is not valid", 422, 2


class ClaimIdReused(RedschedError):
    """The claim id is known with other content."""

    problem, title, status, exit_code = "claim-id-reused", "Claim id used for another request", 422, 2


class Conflict(RedschedError):
    """Well formed, and not possible as objects stand."""

    status, exit_code = 409, 3


class NoValidHost(Conflict):
    """No host fits. `facts` has `reasons` [{"reason", "hosts"}] and `nearest` [{"host", "needs", "free"}]."""

    problem, title = "no-valid-host", "No host fits"


class ClaimState(Conflict):
    """The claim or the host is not in a state that allows this."""

    problem, title = "claim-state", "Not possible in this state"


class StaleToken(Conflict):
    """The token is not that of the claim's placement."""

    problem, title = "stale-token", "The claim was placed anew since"


class OtherAgent(Conflict):
    """Another agent, whose lease runs, speaks for this host."""

    problem, title = "other-agent", "Another agent speaks for this host"


class PreconditionFailed(Conflict):
    """What is to be changed has another tag than those given. `facts` has `tag`, its own, unless it is not there."""

    problem, title, status = "precondition-failed", "It was changed since it was read", 412


class NotConfirmed(Conflict):
    """Asked for until active, and no word of the hosts came in time. `facts` has `claim_ids`, which have all ended.

    And `failed_attempts` [{"claim_id", "host", "at_ms", "kind", "reason"}]: what became of each placement.
    """

    problem, title, status = "not-confirmed", "No host has confirmed it", 504


class QuotaExceeded(RedschedError):
    """The project's quota does not allow it. `facts` has `exceeded` [{"resource", "limit", "used", "asked"}]."""

    problem, title, status, exit_code = "quota-exceeded", "The project's quota is exceeded", 403, 3


class NotFound(RedschedError):
    """There is no such host, claim or cell."""

    problem, title, status, exit_code = "not-found", "Not found", 404, 4


class PluginError(RedschedError):
    """A filter or weigher that is not redsched's own raised an error, or answered what it must not."""


class Unavailable(RedschedError):
    """Nothing is wrong with the request: send it again after `retry_after_s`."""

    problem, title, status, exit_code = "store-unavailable", "The store is unavailable", 503, 5
    retry_after_s: ClassVar[int] = 1


class StoreUnavailable(Unavailable):
    """The store cannot be reached, or cannot be used as it is set up."""


class Settling(Unavailable):
    """The store is in a new epoch and has not heard from its hosts yet."""

    problem, title = "settling", "The store is settling"
    retry_after_s = 5


class SchemaMismatch(Unavailable):
    """The store is of a schema that this release cannot write, or cannot write beside the releases at work on it."""

    problem, title = "wrong-release", "The store is of another release"
    retry_after_s = 5


class NotDurable(Unavailable):
    """It was done, and too few replicas or disks have said in time that they have it. `reply`: what the script said."""

    problem, title = "not-durable", "Too few copies"

    def __init__(self, detail: str, facts: Mapping[str, Any] | None = None, reply: Sequence[Any] = ()) -> None:
        super().__init__(detail, facts)
        self.reply = list(reply)


class OutcomeUnknown(Unavailable):
    """The call was sent and no answer came: it may or may not have been carried out. The same id gives the truth."""

    problem, title = "outcome-unknown", "The outcome is not known"
