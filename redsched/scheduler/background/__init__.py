"""Background work of a scheduler on a cell; `redsched/scheduler/cell_tasks.py` has all of it.

sweeper.py      each second: ends what has expired, and runs the rest of the work    expiry.py   what it ends
reconciler.py   what scripts have left to do     release_log.py  releases that a new epoch may have lost
workload.py     what is asked of scarce classes  delays.py       how late the work is
lease.py        a duty that one scheduler has    periodic.py     repeats work, even if one run fails

Drains and fencing are in `redsched/scheduler/hosts/`; events are recorded and cells audited by
`redsched/operate/maintenance.py`.
"""
