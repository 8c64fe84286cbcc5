"""The set-ups of stores, by name: one server with a wire from each process, Sentinel, a cluster."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from tests.faults.suite.stores.several import cluster, sentinel
from tests.faults.suite.stores.single import single
from tests.faults.suite.stores.site import Site

SITES: Mapping[str, Callable[[str, Sequence[str]], AbstractAsyncContextManager[Site]]] = {
    "single": single,
    "sentinel": sentinel,
    "cluster": cluster,
}
"""Each factory takes the durability of the run's schedulers, and the names of its cells."""
