"""`scripts/faults`: plays the fault suite and prints what it plays and its tables. Exit 1 where something is wrong."""

import argparse
import asyncio
import sys
import time
from itertools import islice

from tests.faults.suite.plan import SETUPS
from tests.faults.suite.run import planned, run, shapes

LISTED = 40


def main() -> int:
    """Play as the command line says."""
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="what the plan is made of; the time now")
    parser.add_argument("--minutes", type=float, default=5.0, help="for how long rounds are begun; 5")
    parser.add_argument("--rounds", type=int, default=None, help="how many rounds at most; as many as fit")
    parser.add_argument("--only", default="", help="only faults whose name contains this")
    parser.add_argument("--setup", choices=SETUPS, default=None, help="only on this set-up")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--alone", action="store_true", help="only rounds of one fault")
    kinds.add_argument("--together", action="store_true", help="only rounds of several faults at once")
    parser.add_argument("--durability", default="none", help="REDSCHED_DURABILITY of the schedulers; none")
    parser.add_argument(
        "--list", action="store_true", help="show the faults and the beginning of the plan; play nothing"
    )
    given = parser.parse_args()
    setups = (given.setup,) if given.setup else SETUPS
    try:
        rounds = list(
            islice(planned(given.seed, given.only, setups, not given.together, not given.alone), given.rounds or 10_000)
        )
    except ValueError as error:
        parser.error(str(error))
    print(f"seed {given.seed}: scripts/faults --seed {given.seed}")
    if given.list:
        for shape in shapes(given.only):
            print(f"{shape.name:20} {' '.join(shape.setups):25} {' '.join(point for point in shape.points if point)}")
        print(*rounds[:LISTED], sep="\n")
        return 0
    until_s = time.monotonic() + given.minutes * 60
    done = asyncio.run(run(given.seed, iter(rounds), until_s, _say, given.durability))
    print(f"\n{done.tables()}")
    if done.wrong:
        print(f"\n{len(done.wrong)} things are wrong; again with: scripts/faults --seed {given.seed}", file=sys.stderr)
    return 1 if done.wrong else 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
