"""Parity with Nova and Placement: recorded verdicts of their own code, and tests that play them against redsched.

    cases/        random cases in plain terms of Nova and Placement, from fixed seeds
    record        runs the cases through Nova and Placement, where they are installed, and writes `recorded/`
    nova_side, placement_side   build what Nova's classes and Placement's API need
    redsched_*    say the same to redsched: labels, metadata, properties, pools
    hunt          looks for differences on other cases, where all of them are installed
    differences/  the differences that docs name, each with a test of the cases that it explains

`python -m tests.oracle.record` records anew: docs/comparison.md#how-parity-is-tested.
"""
