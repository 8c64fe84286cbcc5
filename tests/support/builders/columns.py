"""A host's flat fields as in the store, and columns filled from such fields."""

from redsched.cache.columns import Columns

FIELDS = {
    "version": "7",
    "epoch": "1-a",
    "status": "enabled",
    "alive": "1",
    "zone": "az1",
    "capacity.VCPU": "64",
    "claimed.VCPU": "3",
    "external.VCPU": "1",
    "min.VCPU": "2",
    "max.VCPU": "32",
    "step.VCPU": "2",
    "total.VCPU": "16",
    "ratio.VCPU": "4.0",
    "agent.journal": "x",
    "claims": "3",
    "starting": "1",
    "failures": "2",
    "aggregate.fast": "1",
    "capacity.gpu0/CUSTOM_GPU_MILLI": "1000",
    "claimed.gpu0/CUSTOM_GPU_MILLI": "250",
    "pool.gpu0": "numa0",
    "pool.numa0": "/",
    "trait.gpu0/CUSTOM_GPU_T4": "1",
    "trait.numa0/HW_NUMA_ROOT": "1",
    "trait.HW_CPU_X86_AVX2": "1",
    "label.rack.row": "r4",
    "metric.cpu.percent": "12.5",
}


def columns_of(**hosts: dict[str, str]) -> Columns:
    """Return the columns of the cell in epoch 1-a with these hosts' fields."""
    columns = Columns()
    columns.set_epoch("1-a")
    for host, fields in hosts.items():
        columns.put(host, fields)
    return columns
