"""Editing the text of a token file: one entry more or less, and everything else as it was."""

import pytest
import yaml

from redsched.auth.token_file import parse_token_file
from redsched.auth.token_text import keeps_comments, with_entry, without_entry
from redsched.errors import InvalidRequest
from tests.auth.parts import entry, token

USUAL = """\
# Who may call the API.
tokens: # one for each client
  # The pipeline of the web team.
  - id: ci
    sha256: "{ci}"
    role: tenant
    projects:
      - web
      - "" # and the empty one
  - id: ops
    sha256: {ops}
    role: operator # until 2028
    limits: {{requests: 5,
      waiting: 1}}

# The end.
"""
CI, OPS, NEW = entry(token("ci")), entry(token("ops")), entry(token("new"), role="agent", hosts=["h1", "h2"])
TEXT = USUAL.format(ci=CI["sha256"], ops=OPS["sha256"])
FLOW = yaml.safe_dump({"tokens": [CI, OPS]}, default_flow_style=True)


def ids(text: str) -> list[str]:
    return list(parse_token_file(text).tokens)


def test_an_entry_is_added_below_the_others_and_nothing_else_changes() -> None:
    changed = with_entry(TEXT, NEW)
    assert ids(changed) == ["ci", "ops", "new"]
    added = [line for line in changed.splitlines() if line not in TEXT.splitlines()]
    assert added == ["  - id: new", f"    sha256: {NEW['sha256']}", "    role: agent", "    hosts: [h1, h2]"]
    assert without_entry(changed, "new") == TEXT


@pytest.mark.parametrize("token_id", ["ci", "ops"])
def test_an_entry_is_removed_with_its_lines_and_nothing_else(token_id: str) -> None:
    changed = without_entry(TEXT, token_id)
    assert changed is not None
    assert ids(changed) == [one for one in ("ci", "ops") if one != token_id]
    assert [line for line in changed.splitlines() if line not in TEXT.splitlines()] == []
    assert {"# Who may call the API.", "# The end."} <= set(changed.splitlines())


@pytest.mark.parametrize(
    "text", ["", "# Only a comment.\n", "tokens: []\n", "tokens: []", "# A\ntokens: [] # B\n# C\n"]
)
def test_the_first_entry(text: str) -> None:
    changed = with_entry(text, NEW)
    assert ids(changed) == ["new"]
    assert keeps_comments(text, changed)
    assert without_entry(changed, "new") is not None


def test_the_last_entry_leaves_an_empty_list() -> None:
    """A file without it would be refused, and the previous one stay in force with the token that was revoked."""
    changed = without_entry(without_entry(TEXT, "ci") or "", "ops")
    assert changed is not None
    assert ids(changed) == []
    assert changed.startswith("# Who may call the API.\ntokens: [] # one for each client\n")


@pytest.mark.parametrize(
    "text",
    [
        FLOW,
        f"# lost\n{FLOW}",
        TEXT.replace("\n", "\r\n"),
        TEXT.rstrip(),
        f"---\n{TEXT}",
        TEXT.replace("  - id: ci\n", "  -\n    id: ci\n"),
        TEXT.replace("role: tenant", "role: &r tenant"),
        TEXT.replace("  - ", "- ").replace("    ", "  "),
    ],
)
def test_any_style_is_edited_right(text: str) -> None:
    assert ids(with_entry(text, NEW)) == ["ci", "ops", "new"]
    for one in ("ci", "ops"):
        assert ids(without_entry(text, one) or "") == [other for other in ("ci", "ops") if other != one]


def test_comments_that_are_lost_are_noticed() -> None:
    text = f"# about\n{FLOW}"
    assert not keeps_comments(text, with_entry(text, NEW))
    assert keeps_comments(TEXT, with_entry(TEXT, NEW))


def test_an_unknown_id_is_not_removed() -> None:
    assert without_entry(TEXT, "nobody") is None


def test_an_id_that_exists_is_not_added() -> None:
    with pytest.raises(InvalidRequest, match="'ci' exists: revoke it first"):
        with_entry(TEXT, CI)


@pytest.mark.parametrize("text", ["tokens: [", "tokens:\n", "tokens: [{}]", "other: 1"])
def test_a_file_that_is_not_valid_is_not_changed(text: str) -> None:
    with pytest.raises(InvalidRequest):
        with_entry(text, NEW)
    with pytest.raises(InvalidRequest):
        without_entry(text, "ci")


def test_an_entry_that_is_not_valid_is_not_written() -> None:
    with pytest.raises(InvalidRequest, match="hosts is empty"):
        with_entry(TEXT, entry(token("new"), role="agent"))
