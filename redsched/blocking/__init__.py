"""The library for programs without asyncio: a Scheduler whose methods block, and which threads may share.

from redsched.blocking import Scheduler

with Scheduler.connect("redis://localhost") as scheduler:
    found = scheduler.select(Request({"VCPU": 2}))

loop.py        an event loop in a thread, and calls to it from others
scheduler.py   the Scheduler and its groups of methods
"""

from redsched.blocking.scheduler import Scheduler

__all__ = ["Scheduler"]
