"""The programs that measure the code itself: records as JSON, and the files that run."""

import json
import subprocess
import sys

import pytest

from benchmarks import files, records
from redsched.model.records.pages import Page


def test_each_row_of_records_writes_or_reads_the_claims() -> None:
    done = {name: call() for name, call in records.works().items()}
    claims = tuple(map(records.claim, range(records.PAGE)))
    assert done["read a claim"] == claims[0]
    assert done[f"read a page of {records.PAGE}"] == Page(claims, "claim-00099")


def test_a_file_runs_if_a_function_of_it_is_called() -> None:
    claim, before = records.claim(0), sys.getprofile()
    try:
        tracer = files.Tracer()
        claim.is_live  # noqa: B018 - a property, whose function runs
    finally:
        sys.setprofile(before)
    assert {file.removeprefix(files.PACKAGE) for file in tracer.files} == {"model/claims.py"}


def test_files_count_that_all_of_several_have_run() -> None:
    both = [({f"{files.PACKAGE}{name}" for name in names}, 7) for names in (("a.py", "b.py"), ("b.py", "c.py"))]
    assert files.common("both", both) == files.Row("both", ["b.py"], 7)


def test_nothing_is_loaded_before_a_process_is_measured_and_imports_do_not_count() -> None:
    lines = (
        "import sys; from benchmarks import files; print(files.loaded())",
        "tracer = files.Tracer(); import redsched.model.claims; sys.setprofile(None)",
        "print(files.loaded() > 1, tracer.files)",
    )
    ran = subprocess.run((sys.executable, "-c", "\n".join(lines)), check=True, capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["0", "True set()"]


@pytest.mark.long
def test_a_selection_and_a_list_of_claims_are_followed_through_their_processes() -> None:
    run = (sys.executable, "-m", "benchmarks.files", "--json")
    rows = {row["what"]: row for row in json.loads(subprocess.run(run, check=True, capture_output=True).stdout)}
    assert len(rows) == 4
    assert "cli/verbs/claims.py" in rows["claim list over REST: the command"]["run"]
    assert "api/routes/selections.py" in rows["a selection of a new shape over REST: the worker"]["run"]
    assert all(row["loaded"] > len(row["run"]) for row in rows.values())
