"""What further hosts would change: the room of each class, what waits, and how many of a request fit."""

from collections.abc import Sequence

from redsched.decide.work_limit import check_work
from redsched.errors import Conflict, InvalidRequest, NotFound
from redsched.model import HostReport, HostStatus, Request
from redsched.model.records.plans import AddingPlan, ClassAmounts, Room
from redsched.operate.plans.capacity import capacity
from redsched.operate.plans.cell_copy import CellCopy, free_by_class
from redsched.operate.plans.relocation import Relocation
from redsched.store.codec.fields import attribute_fields, host_fields


def with_hosts(copy: CellCopy, reports: Sequence[HostReport], request: Request | None = None) -> AddingPlan:
    """Return what these hosts, empty and enabled, would change. Raises InvalidRequest, TooMuchWork."""
    known = [one.name for one in reports if one.name in copy.columns]
    if known:
        raise InvalidRequest(
            f"host {known[0]!r} is in cell {copy.cell} already: give the hosts to be added names of their own"
        )
    before = free_by_class(copy.columns)
    first = capacity(copy, request) if request is not None else None
    served_before = _served(copy)
    with copy.trial():
        for report in reports:
            copy.add(report.name, new_host_fields(report, copy.columns.epoch))
        after = free_by_class(copy.columns)
        then = capacity(copy, request) if request is not None else None
        served = _served(copy)
    classes = tuple(ClassAmounts(one, after[one][0], before.get(one, (0, 0))[1], after[one][1]) for one in after)
    room = Room(first.places, then.places, first.at_least or then.at_least) if first and then else None
    return AddingPlan(len(reports), classes, len(copy.pending()) - served_before, served - served_before, room)


def _served(copy: CellCopy) -> int:
    """Return how many of the claims that wait for a place would get one, in order."""
    served = 0
    with copy.trial():
        for claim in copy.pending():
            check_work("placing what waits")
            try:
                Relocation(copy).move(claim)
            except (Conflict, NotFound):
                continue
            served += 1
    return served


def new_host_fields(report: HostReport, epoch: str) -> dict[str, str]:
    """Return all fields of a host that is up and enabled, and has attested to this epoch, without claims."""
    fields = {"version": "1", "epoch": epoch, "status": HostStatus.ENABLED.value, "alive": "1"}
    return {**host_fields(report), **attribute_fields(report), **fields}
