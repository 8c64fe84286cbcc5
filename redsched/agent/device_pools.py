"""The names of pools that are single devices. A device keeps the name under which it was first reported.

Collectors name such pools by the present numbers of the devices (`gpu0`, `gpu1`), and say which device each of them is.
Numbers move: when GPU 0 falls off the bus, the driver calls the next one 0. A claim holds a slot of a name, so a name
must not pass to another device: the journal has the device of each name, and the pools of a report are renamed by it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from redsched.agent.collectors.base import LocalWork, Observation
from redsched.model import Amounts, HostReport, Pool
from redsched.model.hosts import MAX_POOLS
from redsched.model.validation import split_slot

MAX_NAME = 63


def named_devices(known: Mapping[str, str], pools: Mapping[str, Pool]) -> dict[str, str]:
    """Return the devices of the `known` names with those of a report's pools that have none, by the name of the pool.

    A new device gets the name that its pool has in the report, or else the free one with the lowest number. A name that
    the report has for a pool of no device is not a device's any more.
    """
    taken = {name for name, pool in pools.items() if not pool.device}
    named = {name: device for name, device in known.items() if name not in taken}
    new = {name: pool.device for name, pool in pools.items() if pool.device and pool.device not in named.values()}
    named |= {name: device for name, device in new.items() if name not in named}
    for name, device in new.items():
        if named[name] != device:
            named[_free(name, named.keys() | taken)] = device
    return named


def gone_devices(named: Mapping[str, str], pools: Mapping[str, Pool]) -> dict[str, str]:
    """Return the devices, by the names of their pools, that the report does not have."""
    present = {pool.device for pool in pools.values()}
    return {name: device for name, device in named.items() if device not in present}


def with_names(observation: Observation, named: Mapping[str, str]) -> Observation:
    """Return an observation in which each device has its own name, and those that are gone have pools without slots."""
    pools = observation.report.pools
    names = {device: name for name, device in named.items()}
    renamed = {name: names[pool.device] for name, pool in pools.items() if pool.device and names[pool.device] != name}
    gone = gone_devices(named, pools)
    if not renamed and not gone:
        return observation
    return Observation(
        _report(observation.report, renamed, gone),
        _amounts(observation.unexplained, renamed),
        frozenset(_slot(slot, renamed) for slot in observation.trusted),
        tuple(_local(work, renamed) for work in observation.local),
    )


def devices_of(slots: Iterable[str], named: Mapping[str, str]) -> dict[str, str]:
    """Return the devices that some slots are of, by the names of their pools."""
    pools = {split_slot(slot)[0] for slot in slots}
    return {pool: named[pool] for pool in sorted(pools & named.keys())}


def _report(report: HostReport, renamed: Mapping[str, str], gone: Mapping[str, str]) -> HostReport:
    pools = {
        renamed.get(name, name): replace(pool, parent=renamed.get(pool.parent, pool.parent))
        for name, pool in report.pools.items()
    }
    left_over = list(gone.items())[: MAX_POOLS - len(pools)]
    return replace(
        report,
        pools=pools | {name: Pool(device=device) for name, device in left_over},
        external=_amounts(report.external, renamed),
        metrics={_metric(name, renamed): value for name, value in report.metrics.items()},
    )


def _amounts(amounts: Amounts, renamed: Mapping[str, str]) -> dict[str, int]:
    return {_slot(slot, renamed): amount for slot, amount in amounts.items()}


def _slot(slot: str, renamed: Mapping[str, str]) -> str:
    pool, resource_class = split_slot(slot)
    return f"{renamed[pool]}/{resource_class}" if pool in renamed else slot


def _metric(metric: str, renamed: Mapping[str, str]) -> str:
    """Return the name of a metric, which for those of a pool begins with its name and a dot."""
    pool = next((name for name in renamed if metric.startswith(f"{name}.")), None)
    return metric if pool is None else f"{renamed[pool]}{metric.removeprefix(pool)}"


def _local(work: LocalWork, renamed: Mapping[str, str]) -> LocalWork:
    return replace(work, amounts=_amounts(work.amounts, renamed))


def _free(name: str, taken: Iterable[str]) -> str:
    """Return a name like `name` that is free: it differs in the number at its end, the lowest that is free."""
    used, kind, number = set(taken), name.rstrip("0123456789"), 0
    while (free := f"{kind[: MAX_NAME - len(str(number))]}{number}") in used:
        number += 1
    return free
