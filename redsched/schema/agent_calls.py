"""What the OpenAPI document calls the body and the reply of the relay of agents' calls: any of theirs."""

from functools import reduce
from operator import or_
from typing import Any

from typing_extensions import TypeAliasType

from redsched.store.agent_calls import CALLS

REPLIES: tuple[Any, ...] = tuple(
    dict.fromkeys(one for call in CALLS.values() if (one := call.reply_type()) is not None)
)
"""The records that replies are."""

AnyCall = TypeAliasType("AnyCall", reduce(or_, CALLS.values()))  # type: ignore[valid-type]
AgentReply = TypeAliasType("AgentReply", reduce(or_, REPLIES))  # type: ignore[valid-type]
