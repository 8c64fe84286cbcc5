"""The output of a run of the fault suite; a run survives its own errors and leaves no process behind."""

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from tests.faults.suite import run as runs
from tests.faults.suite.checks.ledger import Ledger, Levels
from tests.faults.suite.checks.view import View
from tests.faults.suite.checks.watcher import Watcher
from tests.faults.suite.plan import Round, Strike
from tests.faults.suite.processes.child import LONGEST_LOG, append
from tests.faults.suite.processes.leftovers import end_left_over, left_over, marked
from tests.faults.suite.reporting.errors import told
from tests.faults.suite.reporting.reports import explained
from tests.faults.suite.reporting.result import Result
from tests.faults.suite.reporting.tables import levels_table
from tests.faults.suite.reporting.telling import JsonLines, Lines
from tests.support.waiting import wait_until_sync

ROUND = Round(7, "single", (Strike("cut", 40, 1.5, ("agent-0",)),))


def result(*wrong: str) -> Result:
    return Result(
        ROUND,
        answers=90,
        acknowledged=Counter(claimed=40, active=5),
        lost=Counter(expired=2),
        restored=3,
        first_s=0.25,
        wrong=list(wrong),
    )


def test_a_round_is_one_line_and_each_wrong_thing_another() -> None:
    said: list[str] = []
    telling = Lines(said.append)
    telling.begins(ROUND)
    assert "round 7 (single): after 40 answers cut of agent-0 for 1.5 s" in said[0]
    assert "\n" not in said[0], "its end is still to come"
    telling.ended(result("the sums differ"))
    first, second, rest = "".join(said).split("\n")
    assert first.endswith(
        " -> 1 WRONG: 90 answers, 45 acknowledged, 2 lost (expired 2), 3 restored, 0 over-committed; "
        "first 0.2 s, settled - s, agree - s"
    )
    assert (second, rest) == ("  WRONG: the sums differ", "")


def test_a_traceback_is_one_line_with_the_error_first() -> None:
    said: list[str] = []
    Lines(said.append).wrong(
        's2:   File "select.py", line 236\n    raise id_reused(request)\n    ^^^^^^^\nClaimIdReused: s2-one-1\n\n'
    )
    assert said == [
        '  WRONG: ClaimIdReused: s2-one-1 (came by: s2:   File "select.py", line 236 | raise id_reused(request))\n'
    ]


def test_as_json_a_round_is_an_object_on_a_line() -> None:
    said: list[str] = []
    telling = JsonLines(said.append)
    telling.begins(ROUND)
    telling.ended(result("the sums differ"))
    telling.wrong("a key is left")
    first, second = (json.loads(line) for line in "".join(said).splitlines())
    assert (first["kind"], first["round"], first["setup"], first["wrong"]) == (
        "round",
        7,
        "single",
        ["the sums differ"],
    )
    assert first["acknowledged"] == {"claimed": 40, "active": 5}
    assert first["strikes"] == [{"fault": "cut", "point": "", "victims": ["agent-0"], "after": 40, "seconds": 1.5}]
    assert (first["lost"], first["restored"], first["over_committed"], first["first_s"]) == ({"expired": 2}, 3, 0, 0.25)
    assert second == {"kind": "wrong", "wrong": "a key is left"}


def test_a_problem_with_a_claim_tells_the_last_answer_on_it() -> None:
    ledger, watcher = Ledger(), Watcher(lambda _: {}, [("c1",)])
    ledger.hear("s1", "gave", {"id": "s1-one-4", "how": "ending"})
    watcher.take({"c1": View(claims={"s1-one-4": {"state": "active", "host": "h1"}})})
    problem = "claim s1-one-4 is there, and to its owner it is ending"
    line = explained(problem, ledger, watcher)
    assert line.startswith(f"{problem} [s1-one-4: s1 was answered 'gave ending' at ")
    assert line.endswith("; now active on h1]")
    assert explained("the cell is not settled", ledger, watcher) == "the cell is not settled"


def test_the_last_table_has_the_form_of_the_one_in_the_documents() -> None:
    """The rows can be copied into docs/operate/durability.md unchanged."""
    levels = {"claimed": Levels(40, Counter(expired=2)), "active": Levels(5)}
    head, _, first, second = levels_table("scripts/faults --seed 7", [result(), result()], levels, 0).splitlines()
    document = (Path(__file__).parents[3] / "docs/operate/durability.md").read_text()
    assert head in document
    assert first == "| `scripts/faults --seed 7` | 2: cut 2 | active | 5 | 0 | 0 | 0 |"
    assert second == "|  |  | claimed | 40 | 2 (expired 2) | 0 | 0 |"


def test_an_error_is_one_line_with_where_it_came_up() -> None:
    def fail() -> None:
        raise ValueError("two\nlines " + "x" * 1000)

    with pytest.raises(ValueError, match="two") as caught:
        fail()
    line = told(caught.value)
    assert line.startswith("ValueError: two lines xxx")
    assert line.endswith(f"harness/test_telling.py:{fail.__code__.co_firstlineno + 1} fail)")
    assert ("\n" in line, len(line) < 500) == (False, True)


def test_a_log_does_not_grow_for_ever_and_keeps_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for number in range(40):
        append(log, f"{number}\n".encode() * (LONGEST_LOG // 20))
    assert log.stat().st_size <= LONGEST_LOG
    assert log.read_bytes().endswith(b"39\n")


def test_processes_that_are_left_are_ended_by_their_ids_and_reported() -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with marked() as mark:
        mine = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    try:
        wait_until_sync(lambda: "input()" in left_over(mark).get(mine.pid, ""))
        [line] = end_left_over(mark)
        assert line.startswith(f"process {mine.pid} was left over, and has been killed: ")
        assert mine.wait(10) == -9
        assert other.poll() is None
        assert end_left_over(mark) == []
    finally:
        for one in (mine, other):
            one.kill()
            one.communicate()


def test_a_watcher_that_fails_keeps_looking_and_says_so() -> None:
    looks: list[int] = []

    def read(_: object) -> dict[str, View]:
        looks.append(1)
        if len(looks) == 1:
            raise KeyError("no such cell")
        watcher.end()
        return {"c1": View()}

    watcher = Watcher(read, [("c1",)])
    watcher.run()
    assert len(looks) == 2
    [line] = watcher.broken
    assert line.startswith("the watcher: KeyError: 'no such cell' (")


class Failing:
    """A set-up that fails to start."""

    def __init__(self, *_: Any) -> None:
        pass

    async def __aenter__(self) -> None:
        raise OSError("no port is free")

    async def __aexit__(self, *_: object) -> None:
        pass


async def test_a_set_up_that_cannot_be_started_is_reported_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SITES", {"single": Failing})
    said: list[str] = []
    done = await runs.run(1, iter([ROUND, ROUND]), time.monotonic() + 60, Lines(said.append))
    assert len(done.wrong) == runs.MAX_FAILED_STARTS
    assert all("the set-up single could not be started: OSError: no port is free" in one for one in done.wrong)
    assert done.results == []


async def test_what_cannot_be_given_back_is_reported_and_ends_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "play", AsyncMock(side_effect=lambda *_: result()))
    monkeypatch.setattr(runs, "release_all", AsyncMock(side_effect=TimeoutError("scheduler-0 did not say 'released'")))
    started: list[str] = []

    class Bare:
        over_committed, ledger, watcher = 0, Ledger(), Watcher(lambda _: {}, [("c1",)])

        def __init__(self, *_: Any) -> None:
            pass

        async def __aenter__(self) -> "Bare":
            started.append("world")
            return self

        async def __aexit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(runs, "SITES", {"single": Bare})
    monkeypatch.setattr(runs, "world", Bare)
    rounds = [ROUND] * (runs.RELEASE_EVERY + 1)
    done = await runs.run(1, iter(rounds), time.monotonic() + 60, Lines(lambda _: None))
    assert len(done.results) == len(rounds)
    assert len(started) == 4, "a site and a world, and both anew after the first that could not be given back"
    assert [one.partition(" (")[0] for one in done.wrong] == [
        "not all could be given back: TimeoutError: scheduler-0 did not say 'released'"
    ] * 2
