"""Recovery: work that was active and has lost its place gets another one, also where a host keeps it for a request.

A request that waits has not begun; work that was lost has, and others depend on it. The reservation stays, and its
request waits for what is still missing, there or elsewhere.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from redsched.cache.columns import Columns
from redsched.model import Claim, ClaimStatus


def is_recovery(columns: Columns, claim: Claim) -> bool:
    """Return whether a claim that is placed again was active and has lost its work, or its host was written off.

    A move from a working host is none: the work still runs there.
    """
    if claim.state is ClaimStatus.ACTIVE:
        return columns.is_written_off(claim.host)
    return claim.state is ClaimStatus.PENDING and claim.was_active


@contextmanager
def before_reservations(columns: Columns, *claims: Claim) -> Iterator[None]:
    """Inside the context, what hosts keep for requests is free if all of these claims are recovered.

    Nothing inside may let other tasks run.
    """
    kept = list(columns.reserved.rows())
    if not kept or not all(is_recovery(columns, one) for one in claims):
        yield
        return
    with columns.without_reserved(kept):
        yield
