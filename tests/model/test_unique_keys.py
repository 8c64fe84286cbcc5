"""JSON of callers in which a key is given twice is refused wherever it is read."""

from collections.abc import Callable

import httpx
import pytest

from redsched import settings
from redsched.cli.options import json_value
from redsched.errors import InvalidRequest
from redsched.model.unique_keys import check_unique_keys
from redsched.operate.backup.archive import json_object
from tests.api.parts import check_problem, client_of, put_host

TWICE = '{"b": {"a": 1, "a": 2}}'


@pytest.mark.parametrize("reading", [lambda: json_value("--payload", TWICE), lambda: json_object(TWICE)])
def test_it_is_refused_in_options_and_exports(reading: Callable[[], object]) -> None:
    with pytest.raises(InvalidRequest, match=r"has the key 'a' twice in one object: give each key once"):
        reading()


def test_it_is_refused_in_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDSCHED_WEIGHTS", '{"cpu": 1, "cpu": 2}')
    with pytest.raises(InvalidRequest, match="REDSCHED_WEIGHTS has the key 'cpu' twice"):
        settings.from_environment()


async def test_it_is_refused_in_a_patch(clean_store: str) -> None:
    headers = {"content-type": "application/merge-patch+json"}
    async with client_of(settings.Settings(redis_url=clean_store), is_new=True) as api:
        await put_host(api, "h1")
        twice: httpx.Response = await api.patch(
            "/v1/hosts/h1/report", content=b'{"metrics": {"cpu.percent": 1, "cpu.percent": 2}}', headers=headers
        )
        assert "'cpu.percent' twice" in check_problem(twice, 422, "invalid-request")["detail"]


def test_a_number_that_only_python_cannot_read_is_no_error() -> None:
    check_unique_keys(b'{"a": ' + b"9" * 5000 + b"}")
