"""CellStore: one typed call for each script, and the reads of one cell. The only place where a script is called."""

from redsched.store.agent_calls import AgentCalls
from redsched.store.declared_calls import DeclaredCalls
from redsched.store.event_calls import EventCalls
from redsched.store.group_pins import GroupPins
from redsched.store.host_calls import HostCalls
from redsched.store.mend_calls import MendCalls
from redsched.store.quota_calls import QuotaCalls
from redsched.store.schema import SchemaCalls


class CellStore(HostCalls, AgentCalls, DeclaredCalls, GroupPins, SchemaCalls, EventCalls, MendCalls, QuotaCalls):
    """All that can be said to, and read from, one cell. Every method is a coroutine.

    Raises StoreUnavailable, OutcomeUnknown (sent, and no answer came) and, for malformed input, InvalidRequest.
    """
