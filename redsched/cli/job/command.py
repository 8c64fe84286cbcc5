"""`redsched run`: place a job, follow its log, and end with its exit status."""

import os
import sys
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from redsched.cli import named_hosts, options, running
from redsched.cli.fleet import ANYWHERE, Fleet, Where, opened, settings_of
from redsched.cli.job.following import INTERRUPTED, Follower, follow, say
from redsched.cli.options import seconds
from redsched.cli.request_options import RequestOptions, about, request_of, takes_asked
from redsched.cli.running import result_unless_ended
from redsched.errors import Forbidden, InvalidRequest, NotFound
from redsched.model import MAX_RUNTIME_S, MAX_WAIT_S, Claim, ClaimStatus, GangOnExit, OnExit, Request
from redsched.model.validation import check_name
from redsched.settings import Settings


@takes_asked
def run(
    asked: RequestOptions,
    command: Annotated[list[str], typer.Option(hidden=True)] = [],  # noqa: B006 - the words behind `--`
    detach: Annotated[bool, typer.Option("--detach", help="Print the ids of the claims, and end at once.")] = False,
    requeue: Annotated[
        bool,
        typer.Option("--requeue", help="Start the job again, elsewhere if possible, if it fails or its host is lost."),
    ] = False,
    env: Annotated[
        list[str],
        typer.Option(
            "--env",
            metavar="NAME=VALUE",
            help="A variable of the job; NAME alone: as it is here. Repeatable.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer reads it, nobody writes it
    cwd: Annotated[
        str | None,
        typer.Option(
            "--cwd",
            metavar="DIR",
            help="Folder in which the job starts; '': one of its own. Default: this one, or that of the image.",
            show_default=False,
        ),
    ] = None,
    image: Annotated[
        str, typer.Option("--image", help="The image, on hosts that run jobs in containers.", show_default=False)
    ] = "",
    queue_timeout_s: Annotated[int | None, seconds("--wait", most=MAX_WAIT_S, help=options.WAIT)] = None,
    max_runtime_s: Annotated[
        int | None,
        seconds(
            "--max-runtime",
            most=MAX_RUNTIME_S,
            help="Time from the claim until its host stops the job, such as 90 or 8h. Default: no limit.",
        ),
    ] = None,
    consumer: Annotated[str, typer.Option(help=about("consumer"), show_default=False)] = "",
    claim_id: Annotated[
        str,
        typer.Option("--id", help="The claim's id; of several places, what theirs begin with.", show_default=False),
    ] = "",
    where: Where = ANYWHERE,
) -> int:
    """Run a command on a host that fits: redsched run VCPU=4 -- train.sh --epochs 3.

    \b
    Two GPUs of one NUMA node:  redsched run GPU=2 --same numa -- train.sh
    Half a GPU:                 redsched run VCPU=2 GPU=0.5 -- notebook.sh

    The hosts need a hook for jobs, such as deploy/hooks/job. Ctrl-C releases the claim, which stops the job, unless an
    earlier call with this --id has started it.
    """
    if not command:
        raise InvalidRequest(
            "which command is to run is missing: put it behind --, as in `redsched run VCPU=1 -- date`"
        )
    more = {"queue_timeout_s": queue_timeout_s, "max_runtime_s": max_runtime_s, "consumer": consumer}
    request = request_of(asked, **more, on_exit=OnExit.REPLACE if requeue else None)
    if requeue and request.places > 1:
        request = replace(request, gang_on_exit=GangOnExit.REPLACE)
    ids = request.claim_ids or _ids(claim_id or f"job-{uuid.uuid4().hex[:8]}", request.places)
    payload = {"argv": command, "env": _variables(env), "cwd": _folder(cwd, image), "image": image}
    if len(ids) > 1:
        payload["claims"] = list(ids)
    job = replace(request, claim_ids=ids, payload={name: value for name, value in payload.items() if value})
    return running.run(_run(settings_of(where), _Run(job, has_given_id=bool(claim_id or request.claim_ids)), detach))


def _ids(base: str, places: int) -> tuple[str, ...]:
    check_name("claim id", base)
    return (base,) if places == 1 else tuple(f"{base}-{number}" for number in range(places))


def _variables(given: Sequence[str]) -> dict[str, str]:
    """Return variables by name. Raises InvalidRequest for one without a value that is not set here."""
    for one in given:
        if "=" not in one and one not in os.environ:
            raise InvalidRequest(f"--env {one} has no value, and {one} is not set here: give --env {one}=VALUE")
    return options.pairs("variable", [one if "=" in one else f"{one}={os.environ[one]}" for one in given])


def _folder(cwd: str | None, image: str) -> str:
    if cwd is None:
        return "" if image else os.getcwd()
    return os.path.abspath(cwd) if cwd and not image else cwd


@dataclass
class _Run:
    """A job that this call runs, or that it is attached to because an earlier call with the same id has started it."""

    job: Request
    has_given_id: bool
    is_attached: bool = False
    is_placed: bool = False

    @property
    def ids(self) -> str:
        return " ".join(self.job.claim_ids)

    def begin_ids_with(self, prefix: str) -> None:
        """Give the job ids that begin so, as the caller's token requires."""
        ids, payload = tuple(f"{prefix}{one}" for one in self.job.claim_ids), self.job.payload
        if isinstance(payload, dict) and "claims" in payload:
            payload = payload | {"claims": list(ids)}
        self.job = replace(self.job, claim_ids=ids, payload=payload)


async def _run(settings: Settings, run: _Run, detach: bool) -> int:
    """Run a job until it or this command is ended, which releases its claims. Returns the exit status."""
    try:
        status = await result_unless_ended(_place_and_follow(settings, run, detach))
    except BrokenPipeError:  # nobody reads the log any more
        status = None
    if status is not None:
        return status
    if run.is_attached:
        say(f"{run.ids} goes on. To stop it: redsched claim release {run.ids}")
        return INTERRUPTED
    say(f"stopping {run.ids}")
    async with opened(settings, on_demand=True) as fleet:
        await stop(fleet, run.job, run.is_placed)
    return INTERRUPTED


async def stop(fleet: Fleet, job: Request, is_placed: bool) -> None:
    """Release the claims of a job. Until it is known to be placed, its ids may be those of other claims, which stay."""
    for one in job.claim_ids:
        with suppress(NotFound):  # it had not been placed yet
            if is_placed or (await fleet.claims.get(one)).payload == job.payload:
                await fleet.claims.release(one)


async def _place_and_follow(settings: Settings, run: _Run, detach: bool) -> int:
    async with opened(settings) as fleet:
        earlier = await _known(fleet, run.job.claim_ids[0]) if run.has_given_id else None
        run.is_attached = earlier is not None and earlier.state is not ClaimStatus.ENDED
        if earlier and earlier.state is ClaimStatus.ENDED and earlier.payload == run.job.payload and not detach:
            say(f"{run.ids} was run by an earlier call, and this is its outcome: use another --id to run it again")
            ids = list(run.job.claim_ids)
        else:
            ids = await _place(fleet, run)
    run.is_placed = True
    if detach:
        print("\n".join(ids))
        return 0
    if run.is_attached:
        say(f"{run.ids} was started by an earlier call: Ctrl-C leaves it running")
    async with opened(settings, read_only=True) as fleet:
        return await follow(fleet, [Follower(one, sys.stdout.buffer) for one in ids])


async def _place(fleet: Fleet, run: _Run) -> list[str]:
    """Place a job, and return the ids of its claims."""
    try:
        found = await named_hosts.select(fleet, run.job)
    except Forbidden as error:
        prefix = error.facts.claim_prefix
        if run.has_given_id or not prefix:
            raise
        run.begin_ids_with(prefix)
        found = await named_hosts.select(fleet, run.job)
    return [one.claim_id or "" for one in found.selections]


async def _known(fleet: Fleet, claim_id: str) -> Claim | None:
    with suppress(NotFound, Forbidden):  # the selection says what is wrong with the id of another project
        return await fleet.claims.get(claim_id)
    return None
