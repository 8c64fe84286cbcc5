"""Records: what the client reads from a response is what the API wrote, and it is shown the same again."""

from typing import Any

import pytest
from pydantic_core import from_json, to_json

from redsched.api.openapi import RECORDS
from redsched.model.records.hosts import HostView
from redsched.model.records.plans import LeavingPlan
from redsched.model.records.status import StatusReport
from redsched.schema.examples import ANSWERS
from redsched.schema.pages import PAGES, PageOf
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


def test_an_order_that_means_something_is_kept() -> None:
    """JSON objects keep the order of a Mapping, such as the states of claims in a status."""
    cell = {**ANSWERS["StatusReport"]["cells"][0], "claims": {"starting": 1, "active": 2}}
    read: StatusReport = adapter(StatusReport).validate_python({**ANSWERS["StatusReport"], "cells": [cell]})
    assert list(read.cells[0].claims) == ["starting", "active"]


def test_sets_and_tuples_are_restored() -> None:
    read: HostView = adapter(HostView).validate_json(to_json(ANSWERS["HostView"]))
    assert isinstance(read.traits, frozenset)
    assert isinstance(read.aggregates, frozenset)
    assert isinstance(read.unmovable, tuple)


@pytest.mark.parametrize("pages", PAGES, ids=lambda pages: pages.name)
def test_a_page_that_was_read_is_written_as_it_was(pages: PageOf[Any]) -> None:
    example = from_json(to_json(ANSWERS[pages.name]))
    read = pages.read(to_json({**example, "more": 1}))
    assert (from_json(pages.json(read)), pages.values(read)) == (example, example)
    assert all(isinstance(one, pages.record) for one in read.items)
