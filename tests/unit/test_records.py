"""Records: what the client reads from a response is what the API wrote, and it is shown the same again."""

from typing import Any

import pytest
from pydantic_core import from_json, to_json

from redsched.api.openapi import RECORDS
from redsched.model.records.plans import LeavingPlan
from redsched.schema.examples import ANSWERS
from redsched.schema.parsing import adapter, json_of


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_record_that_was_read_is_written_as_it_was(record: Any) -> None:
    example = from_json(to_json(ANSWERS[record.__name__]))
    read = adapter(record).validate_json(to_json(example))
    assert isinstance(read, record)
    assert json_of(read) == example


def test_fields_of_a_newer_release_are_ignored() -> None:
    example, read = ANSWERS["LeavingPlan"], adapter(LeavingPlan).validate_json
    assert read(to_json({**example, "more": 1})) == read(to_json(example))
