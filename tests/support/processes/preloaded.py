"""The last module that the fork server imports: it does what each fork would otherwise do again.

It composes the scripts, searches for plugins, and exempts all imported objects from garbage collection, which would
also copy each of their pages into the fork.
"""

import redsched.scheduler.preload  # noqa: F401
from redsched import pacing
from redsched.decide.plugins.entry_points import own_code
from redsched.store.client.scripts import load_all

load_all()
own_code()
pacing.freeze_existing_objects()
