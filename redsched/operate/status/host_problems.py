"""Hosts that are down, that were written off and still have claims, or that have returned and take none yet."""

from collections.abc import Iterator, Sequence

from redsched.model import HostStatus
from redsched.model.records.status import StatusProblem
from redsched.operate.status.facts import CellFacts
from redsched.operate.status.fencing_problems import fencing_advice
from redsched.store.commands.status import HostHead
from redsched.wording import are, counted, duration, named, problem_about

MANY_DOWN = 3
"""So many hosts that are down at once are likely to have one cause."""
MAX_CLAIMS = 3
"""How many claims on hosts that are down or lost are named."""

Found = Iterator[StatusProblem]


def down(cell: str, facts: CellFacts) -> Found:
    """Find hosts whose lease has expired, and that were not written off; not those that are being fenced."""
    notes = facts.fence_notes
    hosts = [one for name, one in facts.down.items() if name not in notes or not notes[name].is_running]
    if not hosts:
        return
    hosts.sort(key=lambda one: (-one.claims, one.name))
    names = [one.name for one in hosts]
    since = duration(facts.now_ms - hosts[0].until_ms)
    subject = f"host {names[0]} has been down for {since}" if len(hosts) == 1 else f"{len(hosts)} hosts are down"
    others = "" if len(hosts) == 1 else f": {named(names)}"
    detail = f"{subject}, with {_claims_of(facts, hosts)}: no report within the lease{others}"
    if len(hosts) < MANY_DOWN:
        advice = (
            "start the agent again; if the machine will not come back, make sure that it is off, then write the host "
            f"off{_meanwhile(facts, hosts)}"
        )
        command = f"redsched host write-off {names[0]}" + (" --evacuate" if hosts[0].claims else "")
    else:
        advice = (
            "so many at once are likely to have one cause: look at their network, their power and what starts their "
            "agents before you write any of them off"
        )
        command = "redsched host list --status down"
    yield problem_about("host-down", cell, names, detail, advice, (command,))


def _meanwhile(facts: CellFacts, hosts: Sequence[HostHead]) -> str:
    """Return what happens to hosts that are down if nobody does anything."""
    with_claims = [one for one in hosts if one.claims]
    if not with_claims:
        return f"; without claims, nothing waits for {'it' if len(hosts) == 1 else 'them'}"
    notes = facts.fence_notes
    tried = [one for one in with_claims if one.name in notes]
    if len(tried) == len(with_claims):
        return ""  # what the fence command does is a problem of its own
    fenced = [one for one in with_claims if one.status != HostStatus.DISABLED and one not in tried]
    if advice := fencing_advice(facts, [one.name for one in fenced], len(hosts)):
        return advice
    return f"; {'its' if len(hosts) == 1 else 'their'} claims stay there until then"


def lost(cell: str, facts: CellFacts) -> Found:
    """Find hosts that were written off and still have claims."""
    gone = [one for one in facts.gone if one.is_written_off]
    for is_fenced in (False, True):
        for leaving in (False, True):
            hosts = [one for one in gone if one.is_fenced is is_fenced and one.is_evacuated is leaving]
            if hosts:
                yield _lost(cell, facts, hosts)


def _lost(cell: str, facts: CellFacts, hosts: Sequence[HostHead]) -> StatusProblem:
    names = [one.name for one in hosts]
    one = len(names) == 1
    proved = f"fenced, {'its machine' if one else 'their machines'} proved to be off," if hosts[0].is_fenced else ""
    how = proved or "written off,"
    subject = f"{are(names, 'host')} {how} and still {'has' if one else 'have'} {_claims_of(facts, hosts)}"
    if not hosts[0].is_evacuated:
        unknown = "which ended with it" if hosts[0].is_fenced else "of whose work nothing is known"
        return problem_about(
            "host-lost",
            cell,
            names,
            f"{subject}, {unknown}: {named(names)}",
            "have them placed elsewhere, or release them; they stay where they are otherwise",
            (f"redsched host write-off {names[0]} --evacuate", f"redsched claim release --host {names[0]}"),
        )
    claims = sum(one.claims for one in hosts)
    waits = f"which wait{'s' * (claims == 1)} for another place"
    why = "".join(f". {one}: {reason}" for one, reason in _first_unplaced(facts, hosts))
    return problem_about(
        "host-lost",
        cell,
        names,
        f"{subject}, {waits}: {named(names)}{why}",
        "schedulers place these claims as soon as there is room: make some, or see for each what it lacks",
        (f"redsched host show {names[0]}",),
    )


def _first_unplaced(facts: CellFacts, hosts: Sequence[HostHead]) -> list[tuple[str, str]]:
    """Return the first claim of these hosts that has no other place now, and why; nothing if that is not known."""
    ids = (claim for host in hosts for claim in facts.claims_on.get(host.name, ()))
    return [(one, facts.unplaced[one]) for one in ids if one in facts.unplaced][:1]


def returned(cell: str, facts: CellFacts) -> Found:
    """Find hosts that were written off and have returned: they take no claims until somebody enables them."""
    back = [
        one for one in facts.hosts if one.written_off_by and one.status == HostStatus.DISABLED and facts.is_up(one.name)
    ]
    for is_fenced, how in ((True, "fenced"), (False, "written off")):
        names = [one.name for one in back if one.is_fenced is is_fenced]
        if names:
            was, it, is_back = ("was", "it", "is") if len(names) == 1 else ("were", "they", "are")
            takes = "takes" if len(names) == 1 else "take"
            yield problem_about(
                "host-returned",
                cell,
                names,
                f"{counted(len(names), 'host')} {was} {how} and {is_back} back, but {takes} no claims: {named(names)}",
                f"find out why {it} {was} down, then enable {it}; or disable {it} with a reason",
                (f"redsched host enable {names[0]}",),
            )


def _claims_of(facts: CellFacts, hosts: Sequence[HostHead]) -> str:
    """Return the number of claims on these hosts, and the first of them, unless they are on many hosts."""
    number = sum(one.claims for one in hosts)
    ids = [one for host in hosts for one in facts.claims_on.get(host.name, ())]
    text = counted(number, "claim")
    if not ids or len(hosts) >= MANY_DOWN:
        return text
    more = number - MAX_CLAIMS
    return f"{text} ({', '.join(ids[:MAX_CLAIMS])}{f' and {more} more' if more > 0 else ''})"
