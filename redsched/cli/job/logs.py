"""`redsched logs`: the log of a job, where its file can be read."""

import sys
from typing import Annotated

import typer

from redsched.cli.fleet import ANYWHERE, Where, opened, settings_of
from redsched.cli.job.following import INTERRUPTED, Follower, LogFile, follow
from redsched.cli.options import ClaimArgument
from redsched.cli.running import result_unless_ended, run
from redsched.errors import NotFound
from redsched.model import Claim, ClaimStatus
from redsched.settings import Settings

WAITING = frozenset({ClaimStatus.PENDING, ClaimStatus.CLAIMED, ClaimStatus.STARTING})
"""States in which a claim may get a log yet."""


def logs(
    claim: ClaimArgument,
    follows: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended. Ctrl-C leaves it running.")
    ] = False,
    where: Where = ANYWHERE,
) -> int:
    """Show the log of a job: redsched logs job-1 --follow.

    The log is a file on the host of the job. Where it cannot be read, the command says where it is.
    """
    return run(_show(settings_of(where), claim, follows))


async def _show(settings: Settings, claim_id: str, follows: bool) -> int:
    async with opened(settings, read_only=True) as fleet:
        claim = await fleet.claims.get(claim_id)
        if claim.log or not follows or claim.state not in WAITING:
            log = _readable(claim)
            if not follows:
                log.copy_new(sys.stdout.buffer)
                return 0
        done = await result_unless_ended(follow(fleet, [Follower(claim_id, sys.stdout.buffer)]))
    return INTERRUPTED if done is None else 0


def _readable(claim: Claim) -> LogFile:
    """Return the log of a claim. Raises NotFound if there is none, or none that can be read here."""
    if not claim.log:
        why = "its work does not run yet" if claim.state in WAITING else "its work never ran, or its hook names no log"
        raise NotFound(
            f"claim {claim.claim_id} has no log: {why}. `redsched claim show {claim.claim_id}` has its state and reason"
        )
    log = LogFile(claim.log)
    if problem := log.elsewhere:
        raise NotFound(f"claim {claim.claim_id} {problem}. Read it there, or run this command there")
    return log
