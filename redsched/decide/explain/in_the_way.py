"""The claims in the way: as few as possible whose end would make a near miss take a request."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from redsched.decide.explain.edits import in_groups
from redsched.decide.profile import RequestProfile
from redsched.decide.reserving import in_the_way
from redsched.model import Claim, Request
from redsched.model.records.explanations import Miss

ProfileOf = Callable[[Request], RequestProfile]


def with_claims(
    profile: RequestProfile, profile_of: ProfileOf, row: int, miss: Miss, claims: Sequence[Claim], now_ms: int
) -> Miss:
    """Return a miss with the claims in the way, of those on its host.

    If even the end of all would not help, because an amount is larger than any place of the host, and no other change
    helps, the amount is given in groups. Raises TooMuchWork.
    """
    found = in_the_way(profile, row, claims, now_ms)
    if found is None and not miss.changes:
        request, changes = _in_groups(profile, row)
        found = in_the_way(profile_of(request), row, claims, now_ms) if changes else None
        miss = replace(miss, changes=changes, both=True) if found else miss
    return replace(miss, claims={one.claim_id: one.project for one in found}) if found else miss


def _in_groups(profile: RequestProfile, row: int) -> tuple[Request, tuple[str, ...]]:
    """Return the request with each amount that no place of the host has in groups, and these changes as texts."""
    request, changes = profile.request, list[str]()
    for name in profile.request.resources:
        edit = in_groups(request, profile.columns, row, name)
        if edit is not None:
            request = edit.request
            changes.append(edit.says)
    return request, tuple(changes)
