"""The fault suite: schedulers and hosts run while the store, the network, machines and processes break.

Plays the faults that a seed plans, first each alone and then several at once. Prints what it plays, all errors, and
tables of lost and restored claims and of recovery times. With --json everything except the tables is JSON, one
object a line. The exit code is 1 if there was an error.
The faults, the checks and the tables are described in docs/faults.md.
"""

import argparse
import asyncio
import logging
import shlex
import sys
import time
from collections.abc import Sequence
from itertools import islice

import structlog
from pydantic import ValidationError

from redsched.settings import Settings
from tests.faults.suite.plan import CELLS, SETUPS, Round
from tests.faults.suite.reporting.telling import JsonLines, Lines
from tests.faults.suite.run import planned, run, shapes

LISTED = 40
MAX_ROUNDS = 10_000


def main() -> int:
    """Run the suite with the options of the command line."""
    parser = _parser()
    given = parser.parse_args()
    if given.minutes <= 0 or (given.rounds is not None and given.rounds <= 0):
        parser.error("--minutes and --rounds must be above 0")
    try:
        rounds = _rounds(given)
    except ValueError as error:
        parser.error(str(error))
    again = f"scripts/faults --seed {given.seed} {shlex.join(_without_seed(sys.argv[1:]))}".strip()
    heading = f"seed {given.seed}; the same plan again: {again}"
    print(heading, file=sys.stderr if given.json else sys.stdout)
    if given.list:
        _list(given.only, rounds)
        return 0
    # The checks report whatever concerns the operator's own connection.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    until_s = time.monotonic() + given.minutes * 60
    telling = JsonLines(_write) if given.json else Lines(_write)
    done = asyncio.run(run(given.seed, iter(rounds), until_s, telling, given.durability, CELLS[: given.cells]))
    print(f"\n{done.tables(again)}", file=sys.stderr if given.json else sys.stdout)
    if done.wrong:
        print(f"\n{len(done.wrong)} things are wrong; the same plan again: {again}", file=sys.stderr)
    return 1 if done.wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=int(time.time()), help="what the plan is made of (the time now)")
    parser.add_argument("--minutes", type=float, default=5.0, help="for how long rounds are begun (default: 5)")
    parser.add_argument("--rounds", type=int, help="how many rounds at most (default: as many as fit)")
    parser.add_argument("--only", default="", metavar="WORD", help="only faults whose name contains this word")
    parser.add_argument("--setup", choices=SETUPS, help="only on this set-up of the store (default: all)")
    parser.add_argument(
        "--cells", type=int, choices=range(1, len(CELLS) + 1), default=len(CELLS), help="over how many cells (all)"
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--alone", action="store_true", help="only rounds of one fault, each once at each of its points")
    kinds.add_argument("--together", action="store_true", help="only rounds of several faults at once")
    parser.add_argument(
        "--durability",
        default="none",
        help="REDSCHED_DURABILITY of the schedulers: none, replicas=N, or fsync (single only) (default: none)",
    )
    parser.add_argument("--json", action="store_true", help="tell each round as a line of JSON; tables to stderr")
    parser.add_argument("--list", action="store_true", help="show the faults, and how the plan begins; play nothing")
    return parser


def _rounds(given: argparse.Namespace) -> list[Round]:
    """Return the plan. Raises ValueError with a message for the user."""
    try:
        Settings(durability=given.durability)
    except ValidationError as error:
        raise ValueError(f"--durability {given.durability}: {error.errors()[0]['msg']}") from error
    # One server has no replicas; only the single server is started with support for WAITAOF.
    fitting = SETUPS[1:] if "replicas" in given.durability else SETUPS[:1] if "fsync" in given.durability else SETUPS
    if given.setup and given.setup not in fitting:
        raise ValueError(f"--durability {given.durability} is played on {' and '.join(fitting)}, not on {given.setup}")
    setups = (given.setup,) if given.setup else fitting
    plan = planned(given.seed, given.only, setups, not given.together, not given.alone, CELLS[: given.cells])
    found = list(islice(plan, given.rounds or MAX_ROUNDS))
    if not found:
        names = ", ".join(f"{one.name} ({', '.join(one.setups)})" for one in shapes(given.only))
        raise ValueError(f"nothing to play on {' and '.join(setups)}: {names}")
    return found


def _without_seed(words: Sequence[str]) -> list[str]:
    """Return the other options, as they were given."""
    left = list(words)
    if "--seed" in left:
        at = left.index("--seed")
        del left[at : at + 2]
    return [word for word in left if not word.startswith("--seed=")]


def _list(only: str, rounds: Sequence[Round]) -> None:
    print("\nfault, set-ups, and the points at which it strikes:")
    for shape in shapes(only):
        points = " ".join(point for point in shape.points if point)
        print(f"  {shape.name:20} {', '.join(shape.setups):26} {points}".rstrip())
    print("\nthe plan begins:")
    print(*rounds[:LISTED], sep="\n")


def _write(text: str) -> None:
    print(text, end="", flush=True)


if __name__ == "__main__":
    sys.exit(main())
