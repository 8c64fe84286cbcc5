"""How good the hosts that fit are: weighers, and policies, which are named multipliers of weighers.

    weigher             what a weigher is, and how several add up
    headroom, gpu       how much room a host keeps, and how usable it is
    hosts               Nova's weighers, of what a host has and does
    groups              weighers of affinity and spreading
    named               weighers of metrics and properties that settings name
    demand              how much of each class a request takes, and what there is
    aggregates          multipliers that apply to an aggregate's hosts
    registry            all of them, and the policies

Each weigher, with the source of its formula: docs/weighing.md.
"""

from redsched.decide.scoring.registry import POLICIES, weighers
from redsched.decide.scoring.weigher import Score, Weigher, Weighing, score

__all__ = ["POLICIES", "Score", "Weigher", "Weighing", "score", "weighers"]
