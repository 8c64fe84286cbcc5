"""How good the hosts that fit are: weighers, and policies, which are named multipliers of weighers.

    weigher             the base of all weighers, and the sum of several
    headroom, gpu       weighers of how much room a host keeps, and how usable it is
    hosts               Nova's weighers of a host's resources and activity, and those of metrics and properties
    stranding, spared   the weighers of scarce classes: what is left beside them, and who else may use their hosts
    groups              weighers of affinity and spreading
    demand              the amounts of each class that a request takes, and that hosts have
    aggregates          multipliers that apply to an aggregate's hosts
    registry            all weighers and policies

Each weigher, with the source of its formula: docs/weighing.md.
"""

from redsched.decide.scoring.registry import POLICIES, weighers
from redsched.decide.scoring.weigher import Score, Weigher, Weighing, score, scores

__all__ = ["POLICIES", "Score", "Weigher", "Weighing", "score", "scores", "weighers"]
