"""Run the commands of a page and print their output for copying: `python -m tests.docs docs/howto/drain.md`."""

import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs.pages import Step
from tests.docs.play import play
from tests.docs.terminal import Stacks


def show(step: Step, shown: str) -> None:
    print(f"$ {step.command}", shown, sep="\n", end="", flush=True)


def main() -> None:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as opened:
        (page := Path(folder, "page")).mkdir()
        (stacks := Path(folder, "stacks")).mkdir()
        play(Path(sys.argv[1]).read_text(), Stacks(stacks, opened), page, show)


if __name__ == "__main__":
    main()
