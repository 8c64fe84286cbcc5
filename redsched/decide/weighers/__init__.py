"""How good a host is that may take a request: weighers, and policies, which are named multipliers of weighers."""

from redsched.decide.weighers.registry import POLICIES, WEIGHERS, multipliers
from redsched.decide.weighers.weigher import Score, Weigher, score

__all__ = ["POLICIES", "WEIGHERS", "Score", "Weigher", "multipliers", "score"]
