"""The wire format of claim.lua and replace.lua: a ClaimCall as KEYS and ARGV, the flat reply as a ClaimReply.

Conditions (server groups, shared pools, rules, limits) come last, and only in calls that have any.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from redsched.model import Candidate, Claim, ClaimRule, ClaimStatus, Exceeded
from redsched.model.validation import SHARED_POOL, split_slot
from redsched.store.codec.claim_fields import alternates_text
from redsched.store.codec.keys import Keys
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, ClaimReply, HostUsage, Member, Placed, Replacement, SharedObject
from redsched.store.codec.wire import Reply, flat

GROUP = "server-group:"

Arguments = list[str | int]


def counted_by(claim: Claim) -> tuple[str, ...]:
    """Return the names (the ends of the keys) of all objects that count a claim at any placement, hosts included."""
    slots = dict.fromkeys(slot for one in claim.placements for slot in one.slots)
    return (
        *(f"host:{host}" for host in claim.hosts),
        *counting_objects(claim.server_group, slots, claim.gang, claim.project),
    )


def counting_objects(group: str, slots: Iterable[str], gang: str = "", project: str = "") -> tuple[str, ...]:
    """Return the names (the ends of the keys) of the group, gang, quota and shared pools that count a claim."""
    objects = [f"server-group:{group}"] if group else []
    if gang:
        objects.append(f"gang:{gang}")
    if project:
        objects.append(f"quota:{project}")
    pools = dict.fromkeys(split_slot(slot)[0] for slot in slots if slot.startswith(SHARED_POOL))
    return (*objects, *pools)


class ClaimWire:
    """Encodes a call as `keys` and `arguments` of `script` (claim.lua or replace.lua), and decodes its reply.

    The keys of `objects` go between `keys` and `last_keys`.
    """

    def __init__(self, keys: Keys, call: ClaimCall, call_id: str = "") -> None:
        self._call = call
        self._replacements = [member.replacement for member in call.members if member.replacement]
        if 0 < len(self._replacements) < len(call.members):
            raise ValueError("the members of a call are either new claims or claims that are placed again, not both")
        self.script = "replace" if self._replacements else "claim"
        lists = {id(member.candidates): member.candidates for member in call.members}
        hosts = [one.host for candidates in lists.values() for one in candidates]
        self._hosts = list(dict.fromkeys([*hosts, *call.written_off]))
        self._number_of = {host: number for number, host in enumerate(self._hosts, 1)}
        self._lists: dict[tuple[tuple[str, int], ...], int] = {}
        self._texts: dict[int, str] = {}
        """By the id of each candidate, which many members have in common."""
        members = self._members()
        amounts, shared = self._amounts()
        self.objects: tuple[str, ...] = ()
        self.keys = self._first_keys(keys)
        self.last_keys = self._further_keys(keys)
        self.arguments: Arguments = [*self._head(call_id), *amounts, *members, *self._bases()]
        if shared or call.rules or call.limits or any(member.group for member in call.members):
            self._add_conditions(keys, shared)

    @property
    def _is_gang(self) -> bool:
        return self._call.is_gang and len(self._call.members) > 1

    def _first_keys(self, keys: Keys) -> list[str]:
        call = self._call
        found = [*keys.due, keys.quota(call.project), *[keys.claim(member.id) for member in call.members]]
        for host in self._hosts:
            found += keys.of_host(host)
        return found

    def _further_keys(self, keys: Keys) -> list[str]:
        call = self._call
        found = [keys.claim(one) for one in call.expected]
        for one in self._replacements:
            found += _replacement_keys(keys, one)
        if call.alternates:
            found += [keys.alternates(member.id) for member in call.members]
        if self._is_gang:
            found.append(keys.gang(call.members[0].id))
        if call.request:
            found.append(keys.request(call.digest))
        return found

    def _head(self, call_id: str) -> Arguments:
        """Return the arguments that the scripts' headers name, and the carried fields."""
        call = self._call
        decided = (call.epoch, call.now_ms, call.seen_seq, int(call.fresh), call.lease_ms)
        owner = (call.digest, call.project, call.owner, int(call.own_only))
        counts = (len(call.members), len(self._hosts), len(self._lists))
        flags = (call.request, int(call.limited), int(self._is_gang), call_id)
        alternates = (call.most_alternates, alternates_text(call.alternates))
        noted = int(any(member.decision for member in call.members))
        limits = (call.max_runtime_s or "", call.reservation, noted)
        carried = (len(call.carried), *flat(call.carried.items()))
        return [*decided, *owner, *counts, *flags, *alternates, *limits, *carried]

    def _amounts(self) -> tuple[Arguments, list[tuple[int, str, int]]]:
        """Return each list of amounts, and the amounts from shared pools, each with the number of its list."""
        arguments: Arguments = []
        shared: list[tuple[int, str, int]] = []
        for amounts, number in self._lists.items():
            own = [entry for entry in amounts if not entry[0].startswith(SHARED_POOL)]
            if len(own) < len(amounts):
                shared += [(number, *entry) for entry in amounts if entry[0].startswith(SHARED_POOL)]
            arguments += (len(own), *flat(own))
        return arguments, shared

    def _bases(self) -> Arguments:
        """Return the placements on which replace.lua bases new ones, and the expected hosts of other claims."""
        if not self._replacements:
            return []
        arguments: Arguments = []
        for one in self._replacements:
            arguments += (one.token, "gang" if one.with_gang else one.end_reason.value, one.by_s * 1000 or "")
        others = [" ".join(hosts) for hosts in self._call.expected.values()]
        return [*arguments, len(others), *others]

    def _members(self) -> Arguments:
        """Return the members with their candidates. Equal amounts, which are common, are listed only once."""
        members: Arguments = []
        texts: dict[int, str] = {}
        for member in self._call.members:
            text = texts.get(id(member.candidates))
            if text is None:
                text = texts[id(member.candidates)] = self._candidates(member)
            members += (member.id, text)
        return members

    def _candidates(self, member: Member) -> str:
        texts = self._texts
        return " ".join([texts.get(id(one)) or self._text(one) for one in member.candidates])

    def _text(self, candidate: Candidate) -> str:
        number = self._lists.setdefault(tuple(candidate.amounts.items()), len(self._lists) + 1)
        text = self._texts[id(candidate)] = f"{self._number_of[candidate.host]}:{number}"
        return text

    def _add_conditions(self, keys: Keys, shared: Sequence[tuple[int, str, int]]) -> None:
        call, joining = self._call, [(n, one.group) for n, one in enumerate(self._call.members, 1) if one.group]
        groups = dict.fromkeys((*(group for _, group in joining), *(one.group for one in call.rules if one.group)))
        self.objects = (*(GROUP + one for one in groups), *counting_objects("", (slot for _, slot, _ in shared)))
        objects = {name: number for number, name in enumerate(self.objects, 1)}
        # Only the group's hash has the labels by which it counts.
        labels = bool(joining) or any(rule.by.startswith("label:") for rule in call.rules)
        if labels:
            self.keys += map(keys.attributes, self._hosts)
        numbers = self._number_of
        limits = [(numbers[host], limit) for host, limit in call.limits.items() if host in numbers]
        self.arguments += (int(labels), len(objects), len(shared))
        for number, slot, amount in shared:
            pool, resource_class = split_slot(slot)
            self.arguments += (number, objects[pool], resource_class, amount)
        self.arguments.append(len(joining))
        for number, group in joining:
            self.arguments += (number, objects[GROUP + group])
        self.arguments.append(len(limits))
        for number, limit in limits:
            self.arguments += (number, _or_any(limit.claims), _or_any(limit.starting))
        self.arguments.append(len(call.rules))
        for rule in call.rules:
            self.arguments += _rule(rule, objects)
        self.arguments += (len(call.written_off), *(numbers[host] for host in call.written_off))

    def answer(self, reply: Reply) -> ClaimReply:
        """Return the reply as plain data."""
        outcome = Outcome(reply[0])
        rest = iter(reply[3:])
        placed: tuple[Placed, ...] = ()
        looked_at: tuple[HostUsage, ...] = ()
        objects: tuple[SharedObject, ...] = ()
        if outcome in (Outcome.OK, Outcome.ALREADY_DONE):
            placed = tuple(_placed(rest) for _ in range(int(next(rest))))
        if outcome is Outcome.OK:
            objects = tuple(_shared_object(rest) for _ in range(int(next(rest))))
        if outcome is Outcome.FULL:
            next(rest)
        if outcome in (Outcome.OK, Outcome.FULL):
            looked_at = tuple(_usages(rest, self._hosts[int(number) - 1]) for number in rest)
        unknown = tuple(rest) if outcome is Outcome.UNKNOWN else ()
        over = exceeded(tuple(rest)) if outcome is Outcome.OVER_QUOTA else ()
        return ClaimReply(outcome, reply[1], int(reply[2]), placed, looked_at, objects, unknown, over)


def decision_text(call: ClaimCall, answer: ClaimReply) -> str:
    """Return how the hosts of the members that a call has placed were chosen; '' if that is not known of any.

    First the time of the decision and, for each member, its token, which of its candidates was taken, and the number of
    its line; then the lines, which members often share. `DecisionNote.from_text` reads it.
    """
    if answer.outcome is not Outcome.OK:
        return ""
    lines: dict[str, int] = {}
    heads = [
        f"{placed.token}:{(placed.candidate or 0) + 1}:{lines.setdefault(member.decision, len(lines) + 1)}"
        for member, placed in zip(call.members, answer.placed, strict=True)
        if member.decision
    ]
    return "\n".join((" ".join((str(call.now_ms), *heads)), *lines)) if heads else ""


def exceeded(facts: Sequence[str | int]) -> tuple[Exceeded, ...]:
    """Return the limits that a refused call would exceed, by class."""
    rows = (facts[first : first + 4] for first in range(0, len(facts), 4))
    return tuple(sorted(Exceeded(str(name), int(limit), int(used), int(asked)) for name, limit, used, asked in rows))


def _replacement_keys(keys: Keys, replacement: Replacement) -> tuple[str, str]:
    host = keys.host(replacement.host)
    return host, keys.gang(replacement.gang) if replacement.gang else host


def _or_any(limit: int | None) -> str | int:
    return "" if limit is None else limit


def _rule(rule: ClaimRule, objects: Mapping[str, int]) -> Arguments:
    group = objects[GROUP + rule.group] if rule.group else 0
    members = [number + 1 for number in rule.members]
    domains = rule.domains
    return [rule.kind.value, rule.by, group, rule.most, len(members), *members, len(domains), *domains]


def _placed(rest: Iterator[str | int]) -> Placed:
    host, token, expires, state, candidate = next(rest), next(rest), next(rest), next(rest), next(rest)
    return Placed(
        str(host),
        str(token),
        ClaimStatus(str(state)),
        int(expires) if expires else None,
        int(candidate) - 1 if candidate else None,
    )


def _shared_object(rest: Iterator[str | int]) -> SharedObject:
    kind, name, version, length = str(next(rest)), str(next(rest)), int(next(rest)), int(next(rest))
    values = [str(next(rest)) for _ in range(length)]
    return SharedObject(kind, name, version, dict(zip(values[::2], values[1::2], strict=True)))


def _usages(rest: Iterator[str | int], host: str) -> HostUsage:
    version, cause = int(next(rest)), str(next(rest))
    claims, starting, length = int(next(rest)), int(next(rest)), int(next(rest))
    claimed = {str(next(rest)): int(next(rest)) for _ in range(length)}
    return HostUsage(host, version, cause, claimed, claims, starting)
