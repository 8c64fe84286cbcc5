"""A call as kinds of places: the members of a gang, or the single kind of a plain request."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from redsched.decide.profile import RequestProfile
from redsched.decide.rules import Mask
from redsched.model import GangMember, Request


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Identical places: their request, how many there are, and the name of their gang member."""

    profile: RequestProfile
    count: int
    member: str = ""

    @property
    def request(self) -> Request:
        """The request of each of the places."""
        return self.profile.request

    def spreads_in_call(self, by: str) -> bool:
        """Return whether its places are spread by this topology within the call alone, without a server group."""
        return not self.request.server_group and any(one.by == by for one in self.request.spread)


def requests_of(call: Request) -> tuple[tuple[str, Request], ...]:
    """Return (name, request) of each kind of place, in the order of the members.

    A member has the project of the call, and its policy and weights unless it has its own. Members that spread by the
    same topology without a server group are spread together: by the hard rules among them, if there are any, with the
    smallest max_skew.
    """
    if not call.members:
        return (("", call),)
    members = [(one.name, _inherited(call, one)) for one in call.members]
    least = _least_skews(request for _, request in members)
    return tuple((name, _with_skews(request, least)) for name, request in members)


def kind_numbers(kinds: Iterable[Kind]) -> tuple[int, ...]:
    """Return the kind's number of each place, in the order of the places."""
    return tuple(number for number, kind in enumerate(kinds) for _ in range(kind.count))


def eligible_together(kinds: Iterable[Kind], by: str) -> Mask:
    """Return the hosts that places spread together may use, ignoring available room: bool of shape (size,)."""
    masks = [kind.profile.fitting.eligible for kind in kinds if kind.spreads_in_call(by)]
    found = masks[0]
    for mask in masks[1:]:
        found = found | mask
    return found


def _inherited(call: Request, member: GangMember) -> Request:
    own = member.request
    return replace(own, policy=own.policy or call.policy, weights=own.weights or call.weights, project=call.project)


def _least_skews(requests: Iterable[Request]) -> Mapping[str, int]:
    least: dict[str, int] = {}
    for request in requests:
        for spread in () if request.server_group else request.spread:
            if spread.hard:
                least[spread.by] = min(spread.max_skew, least.get(spread.by, spread.max_skew))
    return least


def _with_skews(request: Request, least: Mapping[str, int]) -> Request:
    if request.server_group or not request.spread:
        return request

    soft = (one for one in request.spread if one.by not in least)
    hard = (replace(one, max_skew=least[one.by]) for one in request.spread if one.hard)
    return replace(request, spread=(*hard, *soft))
