"""Runs filter and weigher classes written for Nova, unmodified, on the hosts that pass everything else.

    loading         classes by import path
    catalogue       Nova's own classes: which run, which are refused; configuration: the nova.conf that they read
    lazy_object     the base class of stand-ins for Nova's objects
    host_state      HostState of a row; request_spec: RequestSpec of a request
    novas_objects   the same with parts that are Nova's, for Nova's own classes; novas_topology: NUMA and PCI
    limited         holds classes to the limit of work
    filters         a class as a Filter; weighers: a class as a Weigher

They are called host by host, so they are as slow as in Nova; redsched's own filters are vectorized.
"""

from redsched.decide.plugins.nova.configuration import read_nova_conf, refuse_unusable
from redsched.decide.plugins.nova.filters import nova_filters
from redsched.decide.plugins.nova.weighers import nova_weighers

__all__ = ["nova_filters", "nova_weighers", "read_nova_conf", "refuse_unusable"]
