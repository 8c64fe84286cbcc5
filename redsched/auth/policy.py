"""Who may use a route: roles, and with which restriction."""

from dataclasses import dataclass
from enum import StrEnum

from redsched.model.role import Role


class Access(StrEnum):
    """What a role may do with a route."""

    NONE = "no"
    ALL = "yes"
    PROJECTS = "own projects"
    """Only claims, usage and quotas of the caller's projects; other claims are unknown to it (404)."""
    HOSTS = "own hosts"
    """Only the caller's hosts (403 for others), and the claims that are placed on them."""
    DRY_RUNS = "dry runs"
    """Only calls that write nothing."""


@dataclass(frozen=True, slots=True)
class RoutePolicy:
    """Who may use a route. `is_open`: everyone, without a token."""

    tenant: Access = Access.NONE
    agent: Access = Access.NONE
    reader: Access = Access.NONE
    is_open: bool = False

    def access(self, role: Role) -> Access:
        """Return what a role may do with the route."""
        if self.is_open or role is Role.OPERATOR:
            return Access.ALL
        if role is Role.TENANT:
            return self.tenant
        return self.agent if role is Role.AGENT else self.reader

    @property
    def is_restricted(self) -> bool:
        """Whether a role may use the route only within limits that it has to check itself."""
        return not {self.tenant, self.agent, self.reader} <= {Access.NONE, Access.ALL}

    def either(self, other: "RoutePolicy") -> "RoutePolicy":
        """Return the policy of those who may use this route or the other."""

        return RoutePolicy(
            _either(self.tenant, other.tenant),
            _either(self.agent, other.agent),
            _either(self.reader, other.reader),
            self.is_open or other.is_open,
        )


def _either(one: Access, other: Access) -> Access:
    return other if one is Access.NONE else one


OPEN = RoutePolicy(is_open=True)
OPERATORS = RoutePolicy()
READ = RoutePolicy(reader=Access.ALL)
OWN_PROJECTS = RoutePolicy(tenant=Access.PROJECTS)
READ_OWN_PROJECTS = RoutePolicy(tenant=Access.PROJECTS, reader=Access.ALL)
READ_OWN_CLAIMS = RoutePolicy(tenant=Access.PROJECTS, agent=Access.HOSTS, reader=Access.ALL)
OWN_CLAIMS = RoutePolicy(tenant=Access.PROJECTS, agent=Access.HOSTS)
OWN_PROJECTS_OR_DRY_RUNS = RoutePolicy(tenant=Access.PROJECTS, reader=Access.DRY_RUNS)
OWN_HOSTS = RoutePolicy(agent=Access.HOSTS)
AGENTS = RoutePolicy(agent=Access.ALL)
READ_OWN_HOSTS = RoutePolicy(agent=Access.HOSTS, reader=Access.ALL)
