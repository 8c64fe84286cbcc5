"""Checks shared by several classes of the model. `redsched.model.validation` has those of names."""

from collections.abc import Sequence, Sized

from redsched.errors import InvalidRequest
from redsched.model.validation import MAX_AMOUNT, check_trait, shown

MAX_LEASE_S = 86_400
MAX_DEADLINE_S = 86_400
"""The longest deadline of a move or a drain."""
MAX_COUNT = 200
"""The most places of one request, over all its members."""
MAX_ALTERNATES = 50
MAX_WAIT_S = 3600
MAX_ATTEMPTS = 100
MAX_RUNTIME_S = 2_592_000
"""The longest time that a request may allow its work to run: 30 days. Without a limit, it runs until it is ended."""
MAX_TRAITS = 1000
"""The most traits of one host, pool or shared pool."""
MAX_CLASSES = 64
"""The most classes of a pool, or of one part of a request: a script reads and writes them in one command."""
MAX_PARTS = 64
"""The most items of any list in a request: groups, devices, cells and so on."""
MAX_CONDITIONS = 64
"""The most labels, metadata keys or properties of one part of a request: each is a test of every host."""
MAX_WEIGHTS = 64
MAX_ALTERNATIVES = 64
"""The most traits in one list of `any_of`: an answer repeats them for each host that has none."""
MAX_HOST_SLOTS = 1024
"""The most slots of one host, with those of its pools: a scheduler keeps a column for each slot."""
MAX_REQUEST_BYTES = 131_072
"""The largest body of a selection or a verb: the store keeps a request as long as its claim, caches keep it too."""
MAX_CELL_SLOTS = 4096
"""The most different slots that the hosts of a cell may report over REST: each is a column over all hosts."""
MAX_HOST_CLAIMS = 5000
"""The most claims that a host may report over REST: one script reads all of them."""
MAX_CALL_HOSTS = 200
"""The most hosts of one call of an agent: an agent with more makes several calls."""
MAX_CALL_CLAIMS = 500
"""The most claims that one call of an agent reads."""
MAX_REASON = 1000
"""The most characters of the reason with which an agent reports the end or failure of work."""

MAX_QUERY_ENTRIES = 200
"""The most lists, strings and numbers of one query."""
MAX_QUERY_DEPTH = 20


def check_range(what: str, value: int, low: int, high: int) -> None:
    """Raise InvalidRequest unless `value` is an integer from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidRequest(f"{what} must be a whole number from {low} to {high}, not {shown(value)}")


def check_size(what: str, objects: Sized, most: int) -> None:
    """Raise InvalidRequest if there are more than `most` objects."""
    if len(objects) > most:
        raise InvalidRequest(f"{what} has {len(objects)} entries: at most {most} are allowed")


def check_any_of(any_of: Sequence[frozenset[str]]) -> None:
    """Raise InvalidRequest unless these are valid sets of traits. One trait of each set suffices."""
    check_size("any_of", any_of, MAX_PARTS)
    for one in any_of:
        check_size("a list of any_of", one, MAX_ALTERNATIVES)
        if not one:
            raise InvalidRequest("any_of has an empty list, which no host can satisfy: name at least one trait in each")
        for trait in one:
            check_trait(trait)


def check_limit(limit: int) -> None:
    """Raise InvalidRequest unless a page may have so many items; the most is the caller's own choice."""
    check_range("limit", limit, 1, MAX_AMOUNT)


def check_wait(queue_timeout_s: int) -> None:
    """Raise InvalidRequest unless a call may wait so many seconds for room."""
    check_range("queue_timeout_s", queue_timeout_s, 0, MAX_WAIT_S)


def check_lease(lease_s: int) -> None:
    """Raise InvalidRequest unless a lease may have this length, in seconds."""
    check_range("lease_s", lease_s, 1, MAX_LEASE_S)
