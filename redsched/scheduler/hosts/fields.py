"""Parse fields of stored hashes for views: slots of hosts and shared pools, host status, quotas, prefixed names."""

from collections.abc import Mapping
from dataclasses import dataclass

from redsched.model import HostCondition, HostStatus, Quota, condition_of
from redsched.model.records.hosts import SlotView
from redsched.model.validation import MAX_AMOUNT, parse_int
from redsched.store.codec.fields import LIMIT, WRITTEN_OFF
from redsched.store.codec.replies import Clock


def slot_views(fields: Mapping[str, str]) -> dict[str, SlotView]:
    """Return every slot that has capacity or claimed amounts. A slot that was removed may still have the latter."""
    slots = {name.partition(".")[2] for name in fields if name.startswith(("capacity.", "claimed."))}
    return {slot: _slot_view(slot, fields) for slot in sorted(slots)}


def keyed(prefix: str, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that begin with `prefix`, by the rest of their names."""
    return {name[len(prefix) :]: value for name, value in fields.items() if name.startswith(prefix)}


def status_from(fields: Mapping[str, str]) -> HostStatus:
    """Return the status that an operator gave a host; DISABLED if a manual edit made the field unreadable."""
    message = fields.get("status", "")
    return HostStatus(message) if message in set(HostStatus) else HostStatus.DISABLED


@dataclass(frozen=True, slots=True)
class HostLease:
    """Whether a host is heard of: `until_ms` is when its lease runs out (Unix ms)."""

    alive: bool
    until_ms: int
    written_off: bool

    @property
    def down_since_ms(self) -> int | None:
        """When its lease ran out (Unix ms); None while it runs, and if that is not known."""
        return None if self.alive else self.until_ms or None


LEASE_FIELDS = ("status", "epoch", "alive", "alive_until_ms")


def lease_of(fields: Mapping[str, str], now_ms: int) -> HostLease:
    """Return the lease of a host. Until a scheduler notices that it has run out, the host is marked as alive."""
    until_ms = parse_int(fields.get("alive_until_ms", ""), 0)
    alive = fields.get("alive") == "1" and until_ms > now_ms
    return HostLease(alive, until_ms, fields.get("epoch") == WRITTEN_OFF)


def is_live(fields: Mapping[str, str], clock: Clock) -> bool:
    """Return whether a host's lease runs and it has attested to the epoch, from LEASE_FIELDS of its hash."""
    return fields.get("epoch") == clock.epoch and lease_of(fields, clock.now_ms).alive


def condition_from(fields: Mapping[str, str], epoch: str, now_ms: int) -> tuple[HostCondition, int | None]:
    """Return a host in one word, from LEASE_FIELDS of its hash, and since when it is down."""
    lease = lease_of(fields, now_ms)
    attested = fields.get("epoch") == epoch
    return condition_of(status_from(fields), lease.alive, attested, lease.written_off), lease.down_since_ms


def quota_from(project: str, fields: Mapping[str, str]) -> Quota | None:
    """Return a project's quota; None if it has no limit. A limit that a manual edit made unreadable is 0."""
    limits = {name: parse_int(text, 0) for name, text in keyed(LIMIT, fields).items()}
    return Quota(project, limits) if limits else None


def number(text: str) -> float:
    """Parse a number as the store writes it; one that a manual edit made unreadable is 0."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def _slot_view(slot: str, fields: Mapping[str, str]) -> SlotView:
    def amount(kind: str, default: int = 0, unreadable: int = 0) -> int:
        return parse_int(fields.get(f"{kind}.{slot}", str(default)), unreadable)

    capacity = amount("capacity")
    claimed, external = amount("claimed", unreadable=MAX_AMOUNT), amount("external", unreadable=MAX_AMOUNT)
    return SlotView(
        total=amount("total"),
        reserved=amount("reserved"),
        allocation_ratio=number(fields.get(f"ratio.{slot}", "1.0")),
        min_unit=amount("min", 1),
        max_unit=amount("max"),
        step_size=amount("step", 1),
        capacity=capacity,
        claimed=claimed,
        external=external,
        free=capacity - claimed - external,
        kept=amount("kept", unreadable=MAX_AMOUNT),
    )
