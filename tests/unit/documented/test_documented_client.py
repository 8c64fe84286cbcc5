"""docs/howto/python-client.md: the arguments and methods of its tables, and its tasks for Ansible."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_core import to_json

from redsched.client import Client
from redsched.model import Request
from redsched.operations.table import ALL, GROUPS
from redsched.requests.parsing import parse
from redsched.requests.verbs import TokenBody
from tests.support.openapi import openapi_document

PAGE = (Path(__file__).parents[3] / "docs" / "howto" / "python-client.md").read_text()
[TASKS] = (yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
TEMPLATE = re.compile(r"{{ (\S+) }}")
VALUES = {
    "redsched_url": "",
    "redsched_token": "t",
    "inventory_hostname": "h1",
    "selected.json.selections[0].claim_id": "nightly-h1",
    "selected.json.selections[0].token": "1790000000000-9f3a12cd.4711",
}


def firsts(title: str) -> set[str]:
    """Return the names in backquotes in the first cells of the table after a heading."""
    rows = re.findall(r"^\| (`[^|]+) \|", PAGE.split(title)[1].split("\n## ")[0].split("\n### ")[0], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w.]+)", row)}


def test_every_argument_of_a_client_is_documented_and_no_other() -> None:
    given = inspect.signature(Client).parameters.keys()
    assert firsts("### What a client is given") == given - {"url", "transport"}


def test_every_method_is_documented_and_no_other() -> None:
    with Client("http://localhost") as client:
        groups = {one.group: getattr(client, one.group) for one in GROUPS if one.group}
    own = {
        f"{name}.{method}"
        for name, group in groups.items()
        for method, one in vars(type(group)).items()
        if method[0] != "_" and callable(one)
    }
    known = {one.name for one in ALL} | own | {"run", "changes"}
    assert firsts("## Python") == known, "docs/howto/python-client.md has other rows"


def filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: filled(one) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one) for one in value]
    return TEMPLATE.sub(lambda found: VALUES[found[1]], value) if isinstance(value, str) else value


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["name"])
def test_a_task_of_ansible_calls_a_route_with_a_body_that_it_takes(task: dict[str, Any]) -> None:
    call = filled(task["ansible.builtin.uri"])
    paths = {re.sub(r"{\w+}", "nightly-h1", path): verbs for path, verbs in openapi_document()["paths"].items()}
    route = paths[call["url"]][call["method"].lower()]
    assert {str(one) for one in call.get("status_code", [200])} <= route["responses"].keys()
    if "body" in call:
        parse(to_json(call["body"]), TokenBody if call["url"].endswith("/confirm") else Request)
