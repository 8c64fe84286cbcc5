"""The words that scripts answer with: outcomes, and the causes for which a claim passed a host over."""

from enum import StrEnum


class Outcome(StrEnum):
    """What a script did. Only OK and ENDING have written something for this call."""

    OK = "OK"
    """Done, now."""
    SAME = "SAME"
    """Had been done before, by an earlier sending of the same; nothing was written."""
    ENDING = "ENDING"
    """The claim is on its way to its end: its host has been asked to stop the work."""
    GONE = "GONE"
    """The claim has ended."""
    FULL = "FULL"
    """No listed candidate has room."""
    CONFLICT = "CONFLICT"
    """The id belongs to other content."""
    STALE = "STALE"
    """The token is not that of the claim's last placing."""
    UNKNOWN = "UNKNOWN"
    """There is no such host, claim, server group or shared pool."""
    HELD = "HELD"
    """The host holds claims, or what was declared is in use."""
    OTHER = "OTHER"
    """Another agent, whose lease runs, speaks for this host."""
    ATTEST = "ATTEST"
    """The host has not attested to the present epoch."""
    EPOCH = "EPOCH"
    """The call was built in another epoch."""
    BEHIND = "BEHIND"
    """What only deciding looks at (aggregates, a host's zone, traits, labels) has changed since it was decided."""
    LATE = "LATE"
    """The decision is older than tombstones are remembered."""
    SETTLING = "SETTLING"
    """The cell waits for its hosts to attest, and this needs all of them."""
    RETRY = "RETRY"
    """What was read to build the call has changed since: read again."""


class Cause(StrEnum):
    """Why a host does not take a place. Where it only lacks room, the cause is the slot that was too small, or ''."""

    UNKNOWN = "UNKNOWN"
    ATTEST = "ATTEST"
    DOWN = "DOWN"
    DISABLED = "DISABLED"
    DRAINING = "DRAINING"
    GROUP = "GROUP"
    """A rule about other places stands against it."""
    LIMIT = "LIMIT"
    """It has as many claims, or as many being started, as it may have."""
