"""The scheduler library: replicate, decide, claim.

The API and the commands place claims through it. Of the store they use what has nothing to do with placing: the API
the calls that it relays for agents, the commands what is about the store itself.
"""

from typing import TYPE_CHECKING

from redsched.exports import exports

if TYPE_CHECKING:
    from redsched.scheduler.scheduler import Scheduler as Scheduler
else:
    # Imported on first access: commands over REST use records and settings of the library, and no store.
    __getattr__, __dir__ = exports(__name__)
