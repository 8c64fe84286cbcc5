"""Assigning: which places of a host give which part of a request, exactly. Pure, like all of deciding.

request --> needs (once a request)      what is taken whole from one place
            plan  (once a layout)       which places could, by classes and traits
            rooms (each host)           the numbers
            search on a board           --> amounts by slot
"""

from redsched.decide.pools.assign import assignments, is_plain
from redsched.decide.pools.demand import Demands, PoolDemand, cell_demands, needs_of
from redsched.decide.pools.shared import may_use, shared_with

__all__ = ["Demands", "PoolDemand", "assignments", "cell_demands", "is_plain", "may_use", "needs_of", "shared_with"]
