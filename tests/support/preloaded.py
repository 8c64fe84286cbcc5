"""The last module that the server of forks imports: it does what each fork would otherwise do again.

It composes the scripts, looks for plugins, and exempts all that was imported from garbage collection, which would also
copy each page of it into the fork.
"""

from redsched import pacing
from redsched.decide.plugins.entry_points import own_code
from redsched.store.client.scripts import load_all

load_all()
own_code()
pacing.freeze_existing_objects()
