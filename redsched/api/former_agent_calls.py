"""The routes of agents of the release before the relay, as calls of it: an API is upgraded before its agents."""

from dataclasses import dataclass
from typing import Any

from redsched.store.agent_calls import (
    CALLS,
    AgentCall,
    AttestCall,
    ClaimIdsCall,
    ClaimsCall,
    DevicesCall,
    HeartbeatsCall,
    InboxesCall,
    LocalCall,
    MissingTextsCall,
    RaiseEpochCall,
    ReportCall,
    RestoreTextCall,
    TextsCall,
)

AGENT = "/v1/agent"
HOST = f"{AGENT}/hosts/{{host}}"
CLAIM = f"{HOST}/claims/{{claim_id}}"
VERBS = ("accept", "confirm", "renew", "fail", "work-ended", "stop-failed", "gone", "resized")


@dataclass(frozen=True, slots=True)
class Former:
    """A route whose path has the first fields of a call, and whose body, or query, has the others."""

    method: str
    path: str
    call: type[AgentCall[Any]]

    @property
    def in_path(self) -> dict[str, str]:
        """The fields of the call that the path has, by their names there."""
        names = [name for name in ("host", "claim_id") if f"{{{name}}}" in self.path]
        return {name: "name" if self.call is ReportCall else name for name in names}


FORMER = (
    Former("POST", f"{AGENT}/heartbeats", HeartbeatsCall),
    Former("POST", f"{AGENT}/inboxes", InboxesCall),
    Former("POST", f"{AGENT}/claim-ids", ClaimIdsCall),
    Former("POST", f"{AGENT}/claims", ClaimsCall),
    Former("PUT", f"{HOST}/report", ReportCall),
    Former("POST", f"{HOST}/attest", AttestCall),
    Former("GET", f"{HOST}/devices", DevicesCall),
    Former("POST", f"{HOST}/raise-epoch", RaiseEpochCall),
    Former("POST", f"{HOST}/texts/missing", MissingTextsCall),
    Former("GET", f"{CLAIM}/texts", TextsCall),
    Former("PUT", f"{CLAIM}/texts", RestoreTextCall),
    *(Former("POST", f"{CLAIM}/{name}", CALLS[name]) for name in VERBS),
    Former("PUT", f"{CLAIM}/local", LocalCall),
)
