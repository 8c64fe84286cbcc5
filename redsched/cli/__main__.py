"""`python -m redsched.cli`: what the `redsched` command runs."""

from redsched.cli import main

main()
