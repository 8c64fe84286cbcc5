"""CellStore: one typed call for each script, and the reads of one cell. The only place where a script is called."""

from redsched.store.commands.declared import DeclaredCalls
from redsched.store.commands.events import EventCalls
from redsched.store.commands.group_cells import GroupPins
from redsched.store.commands.host_claims import AgentCalls
from redsched.store.commands.hosts import HostCalls
from redsched.store.commands.quotas import QuotaCalls
from redsched.store.commands.repair import MendCalls
from redsched.store.commands.schema import SchemaCalls


class CellStore(HostCalls, AgentCalls, DeclaredCalls, GroupPins, SchemaCalls, EventCalls, MendCalls, QuotaCalls):
    """All that can be said to, and read from, one cell. Every method is a coroutine.

    Raises StoreUnavailable, OutcomeUnknown (sent, and no answer came) and, for malformed input, InvalidRequest.
    """
