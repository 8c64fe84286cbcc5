"""What callers can do with a fleet: each operation once, as a method in Python and as a route of the REST API.

operation.py   an operation: its signature, its route, and how it is sent
route.py       the route: path, who may use it, bodies, responses, errors
fleet.py       the operations of a fleet; its groups are in claims.py, hosts.py, declared.py, plans.py, events.py
table.py       all of them

The API makes its routes of these, `redsched.client` and `redsched.blocking` their methods; `Scheduler` has methods of
the same names, which do them. docs/howto/add-an-operation.md adds one.
"""
