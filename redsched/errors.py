"""Every error that redsched raises, and nothing else.

    RedschedError                     problem type          HTTP  exit
    |-- InvalidRequest                invalid-request        422     2   the request is malformed
    |-- ClaimIdReused                 claim-id-reused        422     2   the id belongs to other content
    |-- Conflict
    |   |-- NoValidHost               no-valid-host          409     3   no host fits; the reasons say why
    |   |-- ClaimState                claim-state            409     3   the state of the claim or host forbids it
    |   |-- StaleToken                stale-token            409     3   the claim was placed again since
    |   |-- OtherAgent                other-agent            409     3   another agent speaks for this host
    |   |-- PreconditionFailed        precondition-failed    412     3   the object is not as the request requires
    |   `-- NotConfirmed              not-confirmed          504     3   no host confirmed in time; it was undone
    |-- QuotaExceeded                 quota-exceeded         403     3   the project's quota does not allow it
    |-- Unauthenticated               unauthenticated        401     6   no valid token
    |-- Forbidden                     forbidden              403     6   the role or project does not allow it
    |-- TooHard                       too-hard               422     2   deciding it would take too long
    |-- NotFound                      not-found              404     4   no such host, claim, cell
    |-- PluginError                   internal-error         500     1   a user-supplied filter or weigher failed
    `-- Unavailable                                          503     5   try again
        |-- StoreUnavailable          store-unavailable      503     5   the store is unreachable or unusable
        |   `-- StoreFull             store-full             503     5   the store is out of memory
        |-- PlannerBusy               planner-busy           503     5   too many hard requests wait
        |-- Settling                  settling               503     5   the store lost data; hosts are attesting
        |-- SchemaMismatch            wrong-release          503     5   another release owns the store's schema
        |-- NotDurable                not-durable            503     5   done, but on too few replicas or disks
        `-- OutcomeUnknown            outcome-unknown        503     5   sent, no reply: retry with the same id

Each message names the value seen, the rule it broke and the next step. `facts` has the values for programs: which ones
are in `redsched.model.records.problems`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, eq=False)
class Facts:
    """What an error tells programs. Each error has its own: see `redsched.model.records.problems`."""


class RedschedError(Exception):
    """The root of the tree. `problem` is the last part of the REST problem type, `status` the HTTP status.

    `public` is the text for callers of the REST API, if `detail` has what only operators may see: addresses, keys.
    """

    problem: ClassVar[str] = "internal-error"
    title: ClassVar[str] = "Internal error"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    facts_type: ClassVar[type[Facts]] = Facts

    def __init__(self, detail: str, facts: Facts | None = None, public: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.public = public or detail
        self.facts: Any = self.facts_type() if facts is None else facts


class InvalidRequest(RedschedError, ValueError):
    """The request is malformed. Also a ValueError, so that pydantic validators may raise it unchanged."""

    problem, title, status, exit_code = "invalid-request", "The request is not valid", 422, 2


class ClaimIdReused(RedschedError):
    """The claim id already belongs to a claim with other content."""

    problem, title, status, exit_code = "claim-id-reused", "The claim id belongs to another request", 422, 2


class Conflict(RedschedError):
    """The request is well formed, but conflicts with the current state."""

    status, exit_code = 409, 3


class NoValidHost(Conflict):
    """No host fits. `facts` has the `reasons` and the `nearest` hosts."""

    problem, title = "no-valid-host", "No host fits"


class ClaimState(Conflict):
    """The state of the claim, host or declared object does not allow this operation."""

    problem, title = "claim-state", "The current state does not allow this"


class StaleToken(Conflict):
    """The token is not the current one of the claim's placement."""

    problem, title = "stale-token", "The claim was placed again since"


class OtherAgent(Conflict):
    """Another agent, whose lease is still valid, speaks for this host."""

    problem, title = "other-agent", "Another agent speaks for this host"


class PreconditionFailed(Conflict):
    """The object has none of the given tags, or exists and must not. If it exists, `facts` has its `tag`."""

    problem, title, status = "precondition-failed", "The object is not as the request requires", 412


class NotConfirmed(Conflict):
    """The request was `until: active`, and the hosts did not confirm in time: all its claims have ended."""

    problem, title, status = "not-confirmed", "No host confirmed in time", 504


class QuotaExceeded(RedschedError):
    """The request exceeds the project's quota. `facts` has the limits that are `exceeded`."""

    problem, title, status, exit_code = "quota-exceeded", "The project's quota is exceeded", 403, 3


class Unauthenticated(RedschedError):
    """The request has no valid token. The text never says whether the token's id exists."""

    problem, title, status, exit_code = "unauthenticated", "A valid token is required", 401, 6


class Forbidden(RedschedError):
    """The caller's role, project or hosts do not allow this."""

    problem, title, status, exit_code = "forbidden", "Not allowed", 403, 6


class TooHard(RedschedError):
    """Deciding the request would take more time than one request may take. `facts` has what made it hard."""

    problem, title, status, exit_code = "too-hard", "The request takes too long to decide", 422, 2


class NotFound(RedschedError):
    """The host, claim, cell or other object does not exist."""

    problem, title, status, exit_code = "not-found", "Not found", 404, 4


class PluginError(RedschedError):
    """A user-supplied filter or weigher raised an error or returned an invalid result."""


class Unavailable(RedschedError):
    """A temporary failure that is not the request's fault: retry after `retry_after_s` seconds."""

    problem, title, status, exit_code = "store-unavailable", "The store is unavailable", 503, 5
    retry_after_s: ClassVar[int] = 1


class StoreUnavailable(Unavailable):
    """The store is unreachable, or its configuration makes it unusable."""


class StoreFull(StoreUnavailable):
    """The store is out of memory, and refuses what needs more. What ends or removes something still works."""

    problem, title = "store-full", "The store is out of memory"
    retry_after_s = 5


class PlannerBusy(Unavailable):
    """Too many requests that take long to decide wait already."""

    problem, title = "planner-busy", "Other hard requests wait"


class Settling(Unavailable):
    """The store is in a new epoch, and its hosts have not attested yet."""

    problem, title = "settling", "The store is settling"
    retry_after_s = 5


class SchemaMismatch(Unavailable):
    """This release cannot write the store's schema, or cannot write it beside the releases that are using the store."""

    problem, title = "wrong-release", "The store belongs to another release"
    retry_after_s = 5


class NotDurable(Unavailable):
    """The change was made, but too few replicas or disks acknowledged it in time. `reply` is the script's reply."""

    problem, title = "not-durable", "Too few copies acknowledged"

    def __init__(self, detail: str, facts: Facts | None = None, reply: Sequence[Any] = ()) -> None:
        super().__init__(detail, facts)
        self.reply = list(reply)


class OutcomeUnknown(Unavailable):
    """The call was sent but no reply came: it may or may not have run. Retry with the same id to learn the outcome."""

    problem, title = "outcome-unknown", "The outcome is not known"
