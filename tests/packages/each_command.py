"""Run commands with this interpreter's packages, and print how each ended: `python each_command.py < commands`.

Each line of the input is a command, a list of words in JSON; each line of the output is [exit code, stderr].
"""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from redsched.cli.main import run


def main() -> None:
    for line in sys.stdin:
        errors = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(errors):
            exit_code = run(json.loads(line))
        print(json.dumps([exit_code, errors.getvalue()]), flush=True)
        forget_parts()


def forget_parts() -> None:
    """Drop the modules of packages that could not be imported. In a new process, no later command would have them."""
    for name in list(sys.modules):
        parts = name.split(".")
        if any(".".join(parts[:length]) not in sys.modules for length in range(1, len(parts))):
            sys.modules.pop(name)


if __name__ == "__main__":
    main()
