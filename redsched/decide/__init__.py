"""Decisions: filtering, weighing and picking as pure functions of columns and a request, without Redis or asyncio."""

from redsched.decide.decider import Decider
from redsched.decide.result import Check, Decision, Explanation, HostCheck, Miss, Place, RankedHost, ReasonCount
from redsched.decide.scoring.demand import taken_by

__all__ = [
    "Check",
    "Decider",
    "Decision",
    "Explanation",
    "HostCheck",
    "Miss",
    "Place",
    "RankedHost",
    "ReasonCount",
    "taken_by",
]
