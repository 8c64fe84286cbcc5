"""Connecting as a user of the store who has only what a role needs, as `redsched acl` prints it."""

from collections.abc import Sequence

from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from redsched.store.access.rules import StoreUser, rules_of
from tests.support.plain_client import plain_client
from tests.support.secret_watch import MARK

CELLS = ("c1", "a", "b")
"""The cells of the suites."""
PASSWORD = f"{MARK}store"


def url_as(url: str, role: StoreRole, hosts: Sequence[str] = (), cells: Sequence[str] = CELLS) -> str:
    """Create a user of a store on a unix socket, with default settings, and return the URL to connect as this user.

    Users last as long as the server: emptying a store leaves them.
    """
    user = StoreUser("-".join((role, *cells, *hosts)), role, tuple(cells), tuple(hosts))
    with plain_client(url) as operator:
        operator.ask(("ACL", "SETUSER", user.name, *rules_of(user, Settings(), PASSWORD)))
    return url.replace("unix://", f"unix://{user.name}:{PASSWORD}@")
