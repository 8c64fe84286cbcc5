"""The set-ups that stores stand in, by name: one server with a wire from each process, Sentinel, a cluster."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from tests.faults.suite.several import cluster, sentinel
from tests.faults.suite.single import single
from tests.faults.suite.site import Site

SITES: Mapping[str, Callable[[str, Sequence[str]], AbstractAsyncContextManager[Site]]] = {
    "single": single,
    "sentinel": sentinel,
    "cluster": cluster,
}
"""Each takes the durability that the run's schedulers ask for, and the names of its cells."""
