"""Who sends a request, and what this caller is limited to."""

from dataclasses import dataclass

from redsched.model.role import Role


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a caller may use of one worker at a time."""

    requests: int = 64
    """Requests in progress, of any kind."""
    waiting: int = 64
    """Requests that wait, for room or for a host to confirm."""
    streams: int = 8
    """Open streams of changes."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller, as its token or its OpenID Connect provider describes it.

    `id` is the token's id or the OIDC subject; it is recorded with everything that the caller does.
    """

    id: str
    role: Role
    projects: frozenset[str] = frozenset()
    """The projects of a tenant, or those for which an agent may report local claims."""
    claim_prefix: str = ""
    """What each claim id that a tenant chooses begins with; empty: any id."""
    claims_for: str = ""
    """Who owns the claims that it makes; empty: it does itself."""
    project_wide: bool = True
    """Whether a tenant may change all claims of its projects, and not only those that it owns or nobody does."""
    sees_hosts: bool = False
    """Whether a tenant's refusals and explanations name hosts on which it has no claim."""
    hosts: frozenset[str] = frozenset()
    """The hosts of an agent."""
    cell: str = ""
    """The cell of an agent's hosts; empty: any."""
    zones: frozenset[str] = frozenset()
    """The zones that an agent's hosts may report; empty: any."""
    labels: frozenset[str] = frozenset()
    """The names of labels that an agent's hosts may report; empty: any."""
    traits: frozenset[str] = frozenset()
    """The traits that an agent's hosts may report; empty: any."""
    expires_at_s: float | None = None
    """Unix time at which the token ends; None: never."""
    limits: Limits = Limits()

    @property
    def owner(self) -> str:
        """Who owns the claims that it makes; empty: nobody, because callers are not authenticated."""
        return self.claims_for or self.id

    @property
    def title(self) -> str:
        """Who it is, for messages about what it lacks."""
        return f"the token of {self.id!r}"

    @property
    def own_only(self) -> bool:
        """Whether it may change only claims that it owns, or nobody does."""
        return self.role is Role.TENANT and not self.project_wide


UNRESTRICTED = Caller(id="", role=Role.OPERATOR)
"""The caller of an API without authentication, of the library and of the command line."""
