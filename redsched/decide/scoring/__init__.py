"""How good a host is that may take a request: weighers, and policies, which are named multipliers of weighers.

    weigher      what a weigher is, and how several add up
    room, gpu    how much room a host keeps, and how usable it is
    hosts        Nova's, of what a host has and does; groups: of with whom; named: of what settings name
    aggregates   multipliers that hold for an aggregate's hosts
    registry     all of them, and the policies

Which weigher is which, and where its formula comes from: docs/weighing.md.
"""

from redsched.decide.scoring.registry import POLICIES, weighers
from redsched.decide.scoring.weigher import Score, Weigher, Weighing, score

__all__ = ["POLICIES", "Score", "Weigher", "Weighing", "score", "weighers"]
