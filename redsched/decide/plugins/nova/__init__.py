"""Runs filter and weigher classes written for Nova, unmodified, on the hosts that pass everything else.

    loading       classes by import path
    lazy_object   the base class of stand-ins for Nova's objects
    host_state    HostState of a row; request_spec: RequestSpec of a request
    filters       a class as a Filter; weighers: a class as a Weigher

They are called host by host, so they are as slow as in Nova; redsched's own filters are vectorized.
"""

from redsched.decide.plugins.nova.filters import nova_filters
from redsched.decide.plugins.nova.weighers import nova_weighers

__all__ = ["nova_filters", "nova_weighers"]
