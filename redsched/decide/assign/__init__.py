"""Assigning: which places of a host give which part of a request, exactly. Pure, like all of deciding.

request --> needs (once a request)      what is taken whole from one place
            plan  (once a layout)       which places could, by classes and traits
            rooms (each host)           the numbers
            search on a board           --> amounts by slot
"""

from redsched.decide.assign.assign import assignments, is_plain
from redsched.decide.assign.needs import Needs, needs_of

__all__ = ["Needs", "assignments", "is_plain", "needs_of"]
