"""`python -m redsched.cli`: the same as the `redsched` command."""

from redsched.cli import main

main()
