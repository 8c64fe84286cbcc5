"""Log the agents that the API refuses: else only they know why their hosts are down.

An agent tries again every few seconds, so each is logged once in a while only. What it says of itself, its host in the
path or its name in the header, is not proved.
"""

import math
import re
from time import monotonic as now_s

from starlette.types import Scope

from redsched import logs
from redsched.auth.caller import Caller
from redsched.errors import RedschedError
from redsched.model.role import Role

EVERY_S = 300.0
"""How often an agent that goes on being refused is logged."""
MOST = 1000
"""How many refused agents are told apart. Whoever sends more names than that fills no log."""

_PATH = re.compile(r"/v1/(?:agent/)?hosts/([^/]{1,255})/(?:report|heartbeat|inbox|attest|raise-epoch|texts|claims)\b")
_NAME = re.compile(rb"redsched-agent \(([A-Za-z0-9._-]{1,255})(?: and \d+ more)?\)")
AGENT_PATHS = "/v1/agent"

log = logs.get_logger(__name__)


class RefusedAgents:
    """The agents that were refused lately."""

    def __init__(self) -> None:
        self._logged_s: dict[tuple[str, str, str], float] = {}

    def note(self, scope: Scope, error: RedschedError, caller: Caller | None = None) -> None:
        """Log that a request was refused, if an agent sent it and was not logged lately."""
        path = _PATH.match(scope["path"])
        if path is None and not scope["path"].startswith(AGENT_PATHS):
            return
        if caller is not None and caller.role is not Role.AGENT:
            return
        host, address = path[1] if path else _name(scope), _address(scope)
        token = caller.id if caller else ""
        if self._is_due((host, address, token), now_s()):
            known = {name: value for name, value in (("host", host), ("token", token)) if value}
            log.warning("agent_refused", **known, address=address, problem=error.detail)

    def _is_due(self, who: tuple[str, str, str], at_s: float) -> bool:
        if at_s - self._logged_s.get(who, -math.inf) < EVERY_S:
            return False
        if len(self._logged_s) >= MOST:
            self._logged_s = {one: then_s for one, then_s in self._logged_s.items() if at_s - then_s < EVERY_S}
        if len(self._logged_s) >= MOST:
            return False
        self._logged_s[who] = at_s
        return True


def _name(scope: Scope) -> str:
    """Return the host that an agent names in its User-Agent; '' if none."""
    found = (_NAME.match(value) for name, value in scope["headers"] if name == b"user-agent")
    return next((one[1].decode("ascii") for one in found if one), "")


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
