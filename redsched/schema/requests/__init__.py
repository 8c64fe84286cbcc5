"""Requests: bodies and queries other than the dataclasses of `redsched.model`.

reports.py     reports of hosts             declared.py     shared pools
verbs.py       verbs of claims and hosts    queries.py      lists and deletions

Selections, aggregates, server groups and quotas are read straight into the model (`redsched.schema.parsing`).
"""
