"""What is wrong in a cell, and what is stuck in it: why, and what to do."""

from collections.abc import Iterator, Sequence

from redsched.model import Reason, Token
from redsched.model.records.status import StatusProblem
from redsched.model.tokens import began_ms
from redsched.operate.status.capacity_problems import over_capacity, unusable
from redsched.operate.status.facts import CellFacts
from redsched.operate.status.fencing_problems import fencing_problems
from redsched.operate.status.host_problems import down, lost, returned
from redsched.operate.status.rule_problems import rule_broken
from redsched.store.commands.status import Notification
from redsched.wording import are, counted, duration, named, problem_about, raise_command

WAITS_MS = 60_000
"""A notification that a host has not handled for this long is stuck."""
MAX_LAG_MS = 5_000
"""A replica further behind than this is reported, as by /readyz."""

Found = Iterator[StatusProblem]


def problems_of(cell: str, facts: CellFacts) -> Found:
    """Yield what is wrong in a cell, the most serious first."""
    of_hosts = (down, fencing_problems, lost, returned, _unattested, over_capacity, rule_broken, unusable)
    of_claims = (_ending, _unhandled, _pending, _restarting, _overdue)
    for find in (_schedulers, _epoch, _refused, _unsettled, *of_hosts, *of_claims, _audit):
        yield from find(cell, facts)


def _schedulers(cell: str, facts: CellFacts) -> Found:
    if not facts.schedulers and not facts.recorder:
        yield StatusProblem(
            "no-scheduler",
            cell,
            "no scheduler runs: leases do not expire, and nothing is moved or placed again",
            "start one: an API, or `redsched up`",
            ("redsched api",),
        )
    behind = [one for one in facts.schedulers if one.lag_ms > MAX_LAG_MS]
    if behind:
        names = [f"{one.node} (process {one.pid})" for one in behind]
        yield problem_about(
            "scheduler-behind",
            cell,
            names,
            f"{are(names, 'scheduler')} more than {duration(MAX_LAG_MS)} behind the changes of the store: "
            f"{named(names)}",
            "look at its log and at the load of its machine",
        )


def _epoch(cell: str, facts: CellFacts) -> Found:
    if not facts.head.same_server:
        yield StatusProblem(
            "store-replaced",
            cell,
            "the server is not the one of this epoch: it may have lost data, and the next write starts a new epoch",
            "this ends as soon as a scheduler or an agent writes; if none does, start one",
            ("redsched api",),
        )


def _refused(cell: str, facts: CellFacts) -> Found:
    if not facts.refused:
        return
    highest = max(facts.refused.values(), key=lambda epoch: Token.parse(f"{epoch}.0"))
    names = list(facts.refused)
    ahead = duration(began_ms(highest) - facts.now_ms)
    yield problem_about(
        "epoch-refused",
        cell,
        names,
        f"{are(names, 'host')} refused by the API, and so without claims: {named(names)}. They have seen epoch "
        f"{highest}, which is {ahead} ahead of the store's clock",
        "if the clock of the store was wrong once, and the store has lost that epoch, start one above it; otherwise "
        "these agents are broken, or not to be trusted: stop them",
        (raise_command(highest),),
    )


def _unsettled(cell: str, facts: CellFacts) -> Found:
    head = facts.head
    if head.settled:
        return
    left = f"for {duration(head.settle_at_ms - head.now_ms)} at most"
    why = f"the store may have lost data: the cell waits {left} until its hosts attest what they hold"
    if head.is_wiped:
        yield StatusProblem(
            "unsettled",
            cell,
            f"{why}; {_after_a_wipe(head.unattested)}",
            "start the agents of the hosts that are missing" if head.unattested > 0 else "wait: only time ends this",
        )
        return
    waiting = [one.name for one in facts.hosts if one.delays(head.epoch)]
    yield problem_about(
        "unsettled",
        cell,
        waiting,
        f"{why}; {are(waiting, 'host')} missing: {named(waiting)}",
        "start their agents; a host that is certainly off need not be waited for once it is written off",
        (f"redsched host write-off {waiting[0]}",) if waiting else (),
    )


def _after_a_wipe(missing: int) -> str:
    if missing < 0:
        return "which hosts there were is not known after a wipe"
    return f"of the hosts that schedulers remember from before the wipe, {missing} are missing"


def _unattested(cell: str, facts: CellFacts) -> Found:
    if not facts.head.settled:
        return
    names = [one.name for one in facts.hosts if facts.is_up(one.name) and one.epoch != facts.head.epoch]
    if names:
        yield problem_about(
            "host-unattested",
            cell,
            names,
            f"{are(names, 'host')} up but not attested to the epoch, and so without new claims: {named(names)}",
            "its agent attests within seconds; if not, look at its log (a host without an agent: POST "
            "/v1/hosts/HOST/attest)",
            (f"redsched host show {names[0]}",),
        )


def _ending(cell: str, facts: CellFacts) -> Found:
    stuck = [one for one in _late(facts) if one.op == "end"]
    away = [one for one in stuck if not facts.is_up(one.host)]
    if away:
        yield _waiting_claims(
            "ending-host-down",
            cell,
            facts,
            away,
            "whose host is down: only the host can tell that the work is gone",
            "start its agent; if the machine is certainly off, write the host off",
            (f"redsched host write-off {away[0].host}",),
        )
    here = [one for one in stuck if facts.is_up(one.host)]
    if here:
        yield _waiting_claims(
            "ending",
            cell,
            facts,
            here,
            f"although the host is up: {_why_not_stopped(facts.stuck, here[0])}",
            "remove the cause, and its agent stops it with the next attempt; only if the work is certainly gone, free "
            "the amounts",
            (f"redsched claim show {here[0].claim}", f"redsched claim release {here[0].claim} --force"),
        )


def _why_not_stopped(reason: Reason | None, stuck: Notification) -> str:
    if reason is not None and reason.host == stuck.host:
        return reason.line
    return "its stop hook hangs, or its agent is gone or of an earlier release; the log of the agent tells"


def _waiting_claims(
    kind: str,
    cell: str,
    facts: CellFacts,
    stuck: Sequence[Notification],
    why: str,
    advice: str,
    commands: tuple[str, ...],
) -> StatusProblem:
    first, ids = stuck[0], list(dict.fromkeys(one.claim for one in stuck))
    which = f"claim {first.claim}" if len(ids) == 1 else f"{len(ids)} claims ({named(ids)})"
    since = duration(facts.now_ms - first.at_ms)
    have = "has" if len(ids) == 1 else "have"
    detail = f"{which} {have} been ending for up to {since}, on {first.host}, {why}"
    return problem_about(kind, cell, ids, detail, advice, commands)


def _unhandled(cell: str, facts: CellFacts) -> Found:
    """Find notifications to start or resize work that wait, at hosts with an agent that is up."""
    late = [one for one in _late(facts) if one.op != "end" and facts.is_up(one.host)]
    late = [one for one in late if facts.by_name[one.host].has_agent]
    if late:
        hosts = list(dict.fromkeys(one.host for one in late))
        yield problem_about(
            "notifications",
            cell,
            hosts,
            f"{are(hosts, 'host')} up but without an answer to claims for {duration(facts.now_ms - late[0].at_ms)}: "
            f"{named(hosts)}",
            "look at the log of the agent; a start hook may hang",
            (f"redsched claim show {late[0].claim}",),
        )


def _late(facts: CellFacts) -> list[Notification]:
    late = [one for one in facts.inboxes if one.at_ms + WAITS_MS <= facts.now_ms]
    return sorted(late, key=lambda one: one.at_ms)


def _pending(cell: str, facts: CellFacts) -> Found:
    stuck = facts.stuck_pending
    if stuck:
        ids = [one.claim_id for one in stuck]
        why = facts.why_pending.get(ids[0])
        yield problem_about(
            "pending",
            cell,
            ids,
            f"{are(ids, 'claim')} without a place after several searches: {named(ids)}"
            f"{f'. {ids[0]}: {why.line}' if why else ''}",
            "see why it fits nowhere, and make room",
            (f"redsched claim show {ids[0]}", "redsched host list"),
        )


def _restarting(cell: str, facts: CellFacts) -> Found:
    claims = facts.restarting
    if claims:
        ids, first = [one.claim_id for one in claims], claims[0]
        why = facts.why_pending.get(first.claim_id)
        restarts = named([f"{one.claim_id} ({counted(one.restarts, 'restart')})" for one in claims])
        yield problem_about(
            "restarting",
            cell,
            ids,
            f"{are(ids, 'claim')} started again and again, because the work soon ends by itself: {restarts}"
            f"{f'. {first.claim_id}: {why.line}' if why else ''}",
            "see what the work prints; mend it, or release the claim",
            (f"redsched claim show {first.claim_id}", f"redsched events --claim {first.claim_id}"),
        )


def _overdue(cell: str, facts: CellFacts) -> Found:
    if facts.overdue and facts.head.settled:
        yield problem_about(
            "overdue",
            cell,
            facts.overdue,
            f"{are(facts.overdue, 'claim')} overdue: a deadline passed and no scheduler could act: "
            f"{named(facts.overdue)}",
            "a host that is down or has not attested holds this up, or no scheduler runs",
            (f"redsched claim show {facts.overdue[0]}",),
        )


def _audit(cell: str, facts: CellFacts) -> Found:
    note = facts.audit
    if note is not None and note.broken:
        yield StatusProblem(
            "audit",
            cell,
            f"the last audit, {duration(facts.now_ms - note.at_ms)} ago, left {counted(note.broken, 'problem')}: "
            f"{note.problems[0] if note.problems else ''}",
            "see all of them, with advice; what can be repaired is repaired by --repair",
            ("redsched audit", "redsched audit --repair"),
            count=note.broken,
        )
