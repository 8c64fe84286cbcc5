"""Pool assignment: which places of a host give which parts of a request, exactly. Pure, like all of deciding.

request --> needs (once per request)    the parts, each taken whole from one place
            plan  (once per layout)     which places could give them, by classes and traits
            free slots (each host)  the numbers
            search on a state           --> amounts by slot
"""

from redsched.decide.pools.assign import assignments, demand_on, given_by_roots, is_plain
from redsched.decide.pools.demand import Demands, PoolDemand, alone, cell_demands, needs_of
from redsched.decide.pools.shared import may_use, shared_with

__all__ = [
    "Demands",
    "PoolDemand",
    "alone",
    "assignments",
    "cell_demands",
    "demand_on",
    "given_by_roots",
    "is_plain",
    "may_use",
    "needs_of",
    "shared_with",
]
