"""Placing several places at once: the members of a gang, or one kind of place `count` times.

    kinds --> order --> search (state, queues, domains) --> places with candidates, rules for the claim script
                           \\____ repair ____/

Tentative places are written into the columns themselves and removed again (`redsched.decide.overlay`).
"""

from redsched.decide.gang.candidates import listed
from redsched.decide.gang.kinds import Kind, requests_of
from redsched.decide.gang.placement import Found, find
from redsched.decide.gang.rules import rules_of_places
from redsched.decide.gang.table import PickPolicy

__all__ = ["Found", "Kind", "PickPolicy", "find", "listed", "requests_of", "rules_of_places"]
