"""Which weighers and policies there are, and which of them a request is weighed by."""

from collections.abc import Mapping

from redsched.decide.weighers.room import pack, spread
from redsched.decide.weighers.weigher import Weigher, Weighing
from redsched.errors import InvalidRequest
from redsched.model import Request

WEIGHERS: Mapping[str, Weigher] = {one.name: one for one in (Weigher("spread", spread), Weigher("pack", pack))}
POLICIES: Mapping[str, Mapping[str, float]] = {"spread": {"spread": 1.0}, "pack": {"pack": 1.0}}


def multipliers(request: Request, policy: str, weights: Mapping[str, float]) -> Weighing:
    """Return the multiplier of each weigher: the policy's, over these `weights`, over those of the request.

    `policy` and `weights` are the settings'; a request that names a policy has its own. Raises InvalidRequest for a
    policy or weigher that does not exist.
    """
    chosen = request.policy or policy
    if chosen not in POLICIES:
        raise InvalidRequest(f"unknown policy {chosen!r}: use one of {', '.join(sorted(POLICIES))}")
    merged = {**POLICIES[chosen], **weights, **request.weights}
    for name in merged:
        if name not in WEIGHERS:
            raise InvalidRequest(f"unknown weigher {name!r} in weights: use one of {', '.join(sorted(WEIGHERS))}")
    return {WEIGHERS[name]: multiplier for name, multiplier in sorted(merged.items()) if multiplier}
