"""docs/operate/access-control.md shows what `redsched acl` prints, to the letter."""

import re
from pathlib import Path

from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from redsched.store.access.rules import StoreUser, rules_of

PAGE = (Path(__file__).parents[3] / "docs" / "operate" / "access-control.md").read_text()
PASSWORD = "correct-horse-battery-staple"


def test_the_page_has_the_permissions_of_each_role() -> None:
    """The page's own test ignores numbers and spaces. `python -m tests.docs` prints the lines to be pasted."""
    hosts = {StoreRole.AGENT: ("h17",)}
    users = [StoreUser(f"redsched-{role}", role, ("c1",), hosts.get(role, ())) for role in StoreRole]
    printed = [" ".join(("ACL SETUSER", user.name, *rules_of(user, Settings(), PASSWORD))) for user in users]
    assert re.findall(r"^ACL SETUSER .*$", PAGE, re.MULTILINE) == printed
