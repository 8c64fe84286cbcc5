"""Remove the names of hosts from what callers get who may not see them.

Fields that name a host become empty. In texts, each word that is the name of a host is replaced, whatever the text:
texts of errors and reasons come from many places, and a new one must not need to know of this.
"""

import copy
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from starlette.requests import Request

from redsched.api.access.callers import caller_of, sees_all_claims, sees_hosts
from redsched.auth.caller import Caller
from redsched.errors import NotFound, RedschedError
from redsched.model import Claim, Placement, Reason
from redsched.model.records.bulk import BulkResult
from redsched.model.records.changes import Change
from redsched.model.records.events import Event
from redsched.model.records.explanations import Explanation, Miss
from redsched.model.records.hosts import HostView
from redsched.model.records.problems import NotConfirmedFacts, NoValidHostFacts
from redsched.model.records.selections import Selection, Selections
from redsched.model.reserved_for import ReservedFor
from redsched.model.role import Role

HIDDEN = "a host"
OWN_HOSTS = "redsched.own_hosts"
"""The scope's key of the hosts of the claim that the request is about: its owner may see them."""
BODY = "redsched.body"
"""The scope's key of the body, once it has been read."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NEAREST = re.compile(r"(nearest(?: for [^ ]+)?) [A-Za-z0-9][A-Za-z0-9._-]*:")
"""Where a refusal names the nearest host: it is hidden even if the request has the same word."""
_CLAIM_FIELDS = ("claim", "end_reason", "reason")

IsHost = Callable[[str], bool]
E = TypeVar("E", bound=RedschedError)


def hide_in_text(text: str, is_hidden: IsHost) -> str:
    """Return the text with each word that `is_hidden` accepts replaced."""

    def shown(match: re.Match[str]) -> str:
        word = match.group()
        name = word.rstrip(".-_")
        if is_hidden(word):
            return HIDDEN
        return HIDDEN + word[len(name) :] if name != word and is_hidden(name) else word

    return _WORD.sub(shown, _NEAREST.sub(rf"\1 {HIDDEN}:", text))


class Redactor:
    """Redacts for one request, whose caller sees some hosts, or all."""

    def __init__(self, request: Request) -> None:
        caller = caller_of(request.scope)
        self.is_off = sees_hosts(caller)
        self._request = request
        self._sent: frozenset[str] | None = None
        self._caller = caller
        self._visible: frozenset[str] = caller.hosts | request.scope.get(OWN_HOSTS, frozenset())

    def text(self, text: str, visible: Collection[str] = ()) -> str:
        """Return the text without the names of hosts, except the visible ones."""
        return text if self.is_off else hide_in_text(text, lambda word: self._is_hidden(word) and word not in visible)

    def error(self, error: E) -> E:
        """Return the error without the names of hosts, in its texts and its facts.

        It names the requests that hosts keep something for if the caller may know them, else not.
        """
        shown = copy.copy(error)
        if isinstance(error.facts, NoValidHostFacts):
            shown.facts = self._with_own_kept(error.facts)
            shown.detail, shown.public = map(shown.facts.named, (error.detail, error.public))
        if not self.is_off:
            if isinstance(error.facts, NotConfirmedFacts):  # of the caller's own claims
                self._visible |= {one.host for one in error.facts.failed_attempts or ()}
            shown.detail, shown.public = self.text(shown.detail), self.text(shown.public)
            shown.facts = self._texts(shown.facts)
        shown.args = (shown.detail,)
        return shown

    def _with_own_kept(self, facts: NoValidHostFacts) -> NoValidHostFacts:
        nearest = facts.nearest and tuple(replace(one, kept=self._kept(one.kept)) for one in facts.nearest)
        return replace(facts, kept=self._kept(facts.kept), nearest=nearest)

    def claim(self, claim: Claim) -> Claim:
        """Return the claim as the caller may see it: without the hosts that might take it next, or nearly took it."""
        if self.is_off:
            return claim
        own = _at_own_hosts(self._caller, claim) if self._caller.role is Role.AGENT else claim
        decision = replace(own.decision, ranked=()) if own.decision else None
        unmovable = self.text(own.unmovable)
        return replace(own, alternates=(), reason=self._reason(own), decision=decision, unmovable=unmovable)

    def selections(self, found: Selections) -> Selections:
        """Return the selections without alternates, and dry runs without hosts."""
        if self.is_off:
            return found
        return replace(found, selections=tuple(map(_selection, found.selections)))

    def explanation(self, found: Explanation) -> Explanation:
        """Return the explanation without the names of hosts, and without the claims and requests of others."""
        nearest = (replace(self._of_own_claims(one), kept=self._kept(one.kept)) for one in found.nearest)
        checks = (replace(one, kept=self._kept(one.kept)) for one in found.checks)
        found = replace(found, nearest=tuple(nearest), checks=tuple(checks))
        if self.is_off:
            return found
        return replace(found, nearest=tuple(map(self._miss, found.nearest)), checks=(), ranked=(), closed=())

    def event(self, event: Event) -> Event:
        """Return the event of an own claim, without the names of other hosts in its reason."""
        if self.is_off or "reason" not in event.facts:
            return event
        reason = self.text(event.facts["reason"], {event.facts.get("host", "")})
        return replace(event, facts={**event.facts, "reason": reason})

    def result(self, result: BulkResult) -> BulkResult:
        """Return the result of a bulk call for one claim, without the names of other hosts in its error."""
        if self.is_off or result.problem is None:
            return result
        return replace(result, problem=self.error(result.problem))

    def change(self, change: Change) -> Change:
        """Return the change of an own claim, without what else has changed on its host."""
        fields = {
            name: self.text(value, {change.name}) if name == "reason" else value
            for name, value in change.fields.items()
            if name in _CLAIM_FIELDS or name.startswith("held.")
        }
        return replace(change, fields=fields)

    def host(self, host: HostView) -> HostView:
        """Return a host as its agent may see it, without what its claims found on others when they were to be moved."""
        if self.is_off:
            return host
        unmovable = tuple(replace(one, reason=self.text(one.reason)) for one in host.unmovable)
        failed_moves = tuple(replace(one, reason="") for one in host.failed_moves)
        kept = host.kept_for.seen_by(self._caller.projects)
        return replace(
            host,
            unmovable=unmovable,
            failed_moves=failed_moves,
            reservation_request=kept.request,
            reservation_project=kept.project,
        )

    def _is_hidden(self, word: str) -> bool:
        if word in self._visible or not self._request.app.state.scheduler.knows_host(word):
            return False
        return word not in self._words_sent()

    def _words_sent(self) -> frozenset[str]:
        """Return the words of the request itself: hiding one that is repeated would tell that it is a host."""
        if self._sent is None:
            scope = self._request.scope
            sent = b"\n".join((scope["path"].encode(), scope["query_string"], scope.get(BODY, b"")))
            self._sent = frozenset(_WORD.findall(sent.decode("utf-8", "replace")))
        return self._sent

    def _texts(self, value: Any) -> Any:
        """Return the value with all texts in it redacted, also those that are keys, and a miss without claims."""
        if isinstance(value, str):
            return value if isinstance(value, Enum) else self.text(value)
        if isinstance(value, Mapping):
            return {self.text(name): self._texts(one) for name, one in value.items()}
        if isinstance(value, Miss):
            value = replace(value, host="", after="", claims={})
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{one.name: self._texts(getattr(value, one.name)) for one in fields(value)})
        return tuple(self._texts(one) for one in value) if isinstance(value, tuple) else value

    def _reason(self, claim: Claim) -> Reason | None:
        if claim.reason is None:
            return None
        return replace(claim.reason, text=self.text(claim.reason.text, {claim.reason.host, claim.host, *claim.hosts}))

    def _miss(self, miss: Miss) -> Miss:
        return replace(miss, host="", changes=tuple(map(self.text, miss.changes)))

    def _kept(self, kept: ReservedFor | None) -> ReservedFor | None:
        """Return what a host keeps, for another request unless the caller may see its project."""
        return kept if kept is None or sees_all_claims(self._caller) else kept.seen_by(self._caller.projects)

    def _of_own_claims(self, miss: Miss) -> Miss:
        """Return the miss with those claims in the way that the caller may see, and the number of the others."""
        if sees_all_claims(self._caller):
            return miss
        own = {claim_id: project for claim_id, project in miss.claims.items() if project in self._caller.projects}
        after = miss.after if miss.after in own else ""
        return replace(miss, after=after, claims=own, other_claims=len(miss.claims) - len(own))


def redact_error(request: Request, error: RedschedError) -> RedschedError:
    """Return the error as the caller of the request may see it."""
    return Redactor(request).error(_within_own(caller_of(request.scope), error))


def _within_own(caller: Caller, error: E) -> E:
    """Return the error about an unknown claim with what its caller knows at all: it may be one of others."""
    if sees_all_claims(caller) or not isinstance(error, NotFound) or error.facts.claim_id is None:
        return error
    own = "on its hosts" if caller.role is Role.AGENT else f"of {named_projects(caller.projects)}"
    return type(error)(f"{error.detail}, or is none that {caller.title} sees: only those {own}", error.facts)


def named_projects(projects: Collection[str]) -> str:
    """Return the projects of a token, as text."""
    names = ", ".join(name or "that without a name" for name in sorted(projects))
    return f"project{'s' * (len(projects) > 1)} {names}" if projects else "no project"


def _selection(one: Selection) -> Selection:
    return replace(one, alternates=(), host=one.host if one.claim_id else "")


def _at_own(caller: Caller, one: Placement) -> Placement:
    return one if one.from_host in caller.hosts else replace(one, from_host="")


def _at_own_hosts(caller: Caller, claim: Claim) -> Claim:
    """Return the claim as an agent may see it: at its own host, without placements elsewhere."""
    own = tuple(_at_own(caller, one) for one in claim.placements if one.host in caller.hosts)
    here = claim if claim.host in caller.hosts or not own else claim.view(own[0])
    reason = here.reason if here.reason and here.reason.host in caller.hosts else None
    decision = here.decision if here.decision and here.decision.host in caller.hosts else None
    shown = here.host if here.host in caller.hosts else ""
    return replace(here, host=shown, placements=own, reason=reason, decision=decision)
