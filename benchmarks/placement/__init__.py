"""A running OpenStack Placement beside redsched over REST. See docs/benchmarks.md.

cycles          what is done to both, and the figures
openstack       Placement: the calls that Nova's scheduler makes
redsched_rest   redsched: `redsched up` and its REST API
json_client     the client of both
"""
