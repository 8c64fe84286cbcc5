"""The checks of the fault suite: each must report a state that is broken in one way, and accept a correct one."""

import copy
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest

from redsched.agent.journal.schema import TABLES
from tests.faults.suite.callers.placings import Placings
from tests.faults.suite.callers.traffic import QUOTA
from tests.faults.suite.checks import ends
from tests.faults.suite.checks.ends import Journaled
from tests.faults.suite.checks.ledger import Ledger
from tests.faults.suite.checks.losses import came_back
from tests.faults.suite.checks.rules import books, homes, quota, succession
from tests.faults.suite.checks.view import Look, View, together, view_of
from tests.faults.suite.checks.watcher import Watcher
from tests.faults.suite.fleet import agent_of, cell_of, hosts_in
from tests.faults.suite.works import Work, Works

Change = Callable[[View], object]
EPOCH, TOKEN = "2-b", "2-b.7"


def good() -> View:
    """Return two hosts with an active claim each; both claims count in a group, one has a seat of a shared pool."""
    claims = {
        "a": {"host": "h1", "state": "active", "token": TOKEN, "group": "g", "counted.zone": "az1", "amount.VCPU": "2"},
        "b": {"host": "h2", "state": "active", "token": TOKEN, "group": "g", "counted.zone": "az1", "amount.VCPU": "4"},
    }
    claims["b"]["amount.pool:lic/CUSTOM_SEAT"] = "1"
    host = {"epoch": EPOCH, "alive": "1", "capacity.VCPU": "4", "claims": "1", "starting": "0", "zone": "az1"}
    group = {"policy": "anti-affinity", "max_per_host": "1", "members": "2", "version": "3"}
    return View(
        now_ms=1000,
        meta={"epoch": EPOCH, "settled": "1", "seq": "9"},
        hosts={
            "h1": {**host, "version": "5", "claimed.VCPU": "2"},
            "h2": {**host, "version": "6", "claimed.VCPU": "4"},
        },
        claims=claims,
        groups={"g": {**group, "count.host=h1": "1", "count.host=h2": "1", "count.zone=az1": "2"}},
        pools={"lic": {"capacity.CUSTOM_SEAT": "1", "claimed.CUSTOM_SEAT": "1", "version": "2"}},
        held={"h1": {"a"}, "h2": {"b"}},
    )


def other_cell() -> View:
    """Return one host with a claim, for a second cell beside `good`."""
    it = good()
    claim, host = it.claims["b"], it.hosts["h2"]
    del claim["group"], claim["counted.zone"], claim["amount.pool:lic/CUSTOM_SEAT"]
    claim.update({"host": "h3", "amount.VCPU": "2"})
    host.update({"claimed.VCPU": "2"})
    return View(meta=it.meta, hosts={"h3": host}, claims={"e": claim}, held={"h3": {"e"}})


def unread(_: object) -> Look:
    """The site of watchers that get prepared views: it must not be read."""
    pytest.fail("it is shown what it sees")


def changed(change: Change) -> View:
    view = copy.deepcopy(good())
    change(view)
    return view


def with_more(view: View, host: str, claim_id: str, **fields: str) -> None:
    """Add a claim to a view, with all counters updated."""
    claim = {"host": host, "state": "active", "token": TOKEN, "amount.VCPU": "3", **fields}
    view.claims[claim_id] = claim
    view.held.setdefault(host, set()).add(claim_id)
    view.hosts[host]["claims"] = str(len(view.held[host]))
    view.hosts[host]["claimed.VCPU"] = str(int(view.hosts[host]["claimed.VCPU"]) + int(claim["amount.VCPU"]))


def test_good_books_are_passed() -> None:
    assert list(books(good())) == []
    assert list(succession(good(), good())) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda it: it.hosts["h1"].update({"claimed.VCPU": "1"}), "host h1 says 1 VCPU are claimed, its claims hold 2"),
        (lambda it: it.claims["a"].update({"amount.VCPU": "3"}), "its claims hold 3"),
        (lambda it: it.pools["lic"].update({"claimed.CUSTOM_SEAT": "0"}), "pool:lic says 0 CUSTOM_SEAT"),
        (lambda it: it.held["h1"].clear(), "host h1 lists [], and the claims on it are ['a']"),
        (lambda it: it.held["h1"].add("b"), "host h1 lists ['a', 'b']"),
        (lambda it: it.hosts["h1"].update({"claims": "2"}), "host h1 counts 2"),
        (lambda it: it.hosts["h1"].update({"starting": "1"}), "host h1 counts 1 and 1: there are 1 and 0"),
        (lambda it: it.groups["g"].update({"members": "3"}), "group g counts 3"),
        (lambda it: it.groups["g"].update({"count.zone=az1": "1"}), "group g counts 2"),
        (lambda it: it.hosts["h1"].update({"zone": "az2"}), "claim a is counted in az1, and its host h1 is in az2"),
        (lambda it: it.hosts.pop("h1"), "host h1 is not there, and lists ['a']"),
        (lambda it: it.pools.pop("lic"), "pool:lic is not there, and claims hold {'CUSTOM_SEAT': 1} of it"),
    ],
)
def test_wrong_books_are_reported(change: Change, says: str) -> None:
    assert any(says in problem for problem in books(changed(change)))


def test_a_host_that_comes_to_be_over_within_an_epoch_is_reported() -> None:
    now = changed(lambda it: with_more(it, "h1", "c"))
    assert list(books(now)) == []
    (problem,) = succession(good(), now)
    assert "host h1 came to hold more VCPU than it has" in problem


def test_a_host_that_brought_back_too_much_is_a_fact_and_gets_no_more() -> None:
    over = changed(lambda it: with_more(it, "h1", "c"))
    former = changed(lambda it: it.meta.update({"epoch": "1-a"}))
    assert list(succession(former, over)) == []
    unattested = changed(lambda it: it.hosts["h1"].update({"epoch": "1-a"}))
    assert list(succession(unattested, over)) == []
    more = copy.deepcopy(over)
    with_more(more, "h1", "d")
    (problem,) = succession(over, more)
    assert "got still more: ['d']" in problem


def test_a_shared_pool_and_a_group_that_come_to_be_over_are_reported() -> None:
    now = changed(lambda it: it.claims["a"].update({"amount.pool:lic/CUSTOM_SEAT": "1"}))
    assert any("pool:lic came to hold more CUSTOM_SEAT" in problem for problem in succession(good(), now))
    unsettled = changed(lambda it: it.meta.update({"settled": "0"}))
    assert list(succession(unsettled, now)) == []
    crowded = changed(lambda it: with_more(it, "h1", "c", **{"amount.VCPU": "1", "group": "g"}))
    assert any("more group:g than it has" in problem for problem in succession(good(), crowded))


def test_a_claim_on_a_host_that_has_not_attested_is_reported() -> None:
    former = changed(lambda it: it.hosts["h1"].update({"epoch": "1-a"}))
    now = copy.deepcopy(former)
    with_more(now, "h1", "c", **{"amount.VCPU": "1"})
    (problem,) = succession(former, now)
    assert problem == "host h1 has not attested to 2-b and got ['c']"
    former.meta["seq"], now.meta["seq"] = "8", "7"
    assert list(succession(former, now)) == [], "another server has lost writes, and has no epoch of its own yet"


def test_a_watcher_notes_what_the_rules_say_and_what_an_epoch_misses() -> None:
    watcher = Watcher(unread, [("c1",)])
    watcher.take({"c1": good()})
    watcher.take({"c1": View()})
    watcher.take({"c1": changed(lambda it: (it.meta.update({"epoch": "3-c"}), it.claims.pop("a")))})
    assert watcher.epochs == [EPOCH, "3-c"]
    assert watcher.missed == {"a"}
    assert watcher.over_committed == 0
    heard = changed(lambda it: [host.update({"epoch": "3-c"}) for host in (it.meta, *it.hosts.values())])
    watcher.take({"c1": heard})
    with_more(heard := copy.deepcopy(heard), "h1", "c")
    watcher.take({"c1": heard})
    assert watcher.over_committed == 1
    assert any("claimed, its claims hold 0" in problem for problem in watcher.broken)


def test_each_cell_is_held_to_its_own_past_and_looked_at_alone_while_the_other_is_away() -> None:
    watcher = Watcher(unread, [("c1",), ("c2",)])
    watcher.take({"c1": good(), "c2": other_cell()})
    watcher.take({"c2": other_cell()})
    assert watcher.broken == []
    assert (watcher.instants["c1"], watcher.instants["c2"]) == (1, 2)
    over = other_cell()
    with_more(over, "h3", "f", **{"amount.VCPU": "4"})
    watcher.take({"c2": over})
    (problem,) = watcher.broken
    assert problem.startswith("c2 epoch 2-b seq 9: host h3 came to hold more VCPU than it has")


def test_a_cell_that_no_single_server_has_is_not_looked_at() -> None:
    watcher = Watcher(unread, [("c1",), ("c2",)])
    watcher.take({"c1": good(), "c2": other_cell()})
    watcher.blind_for.add("c2")
    watcher.take({"c1": good(), "c2": View(meta={"epoch": EPOCH})})
    assert (watcher.instants["c1"], watcher.instants["c2"]) == (2, 1)


# After the traffic has stopped


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda it: it.meta.update({"settled": "0"}),
            "the cell is not settled: its epoch is 1.0 s old, and its clock has jumped by 0.0 s",
        ),
        (lambda it: it.hosts.pop("h1"), "host h1 is not there"),
        (lambda it: it.hosts["h1"].update({"epoch": "1-a"}), "host h1 has attested to 1-a, not to 2-b"),
        (lambda it: it.hosts["h1"].update({"alive": "0"}), "host h1 is down"),
        (lambda it: it.claims["a"].update({"state": "starting"}), "claim a on h1 is starting"),
    ],
)
def test_what_has_not_settled_is_reported(change: Change, says: str) -> None:
    assert list(ends.settled(good(), ["h1", "h2"])) == []
    assert says in list(ends.settled(changed(change), ["h1", "h2"]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda it: it.inboxes.update({"h1": 1}), "1 notifications lie in the inbox of h1"),
        (lambda it: it.deadlines.update({"a": 1.0}), "claim a has a deadline"),
        (lambda it: it.others.update({"reconcile": {"a": "2500"}}), "a reconciliation waits for a, put off for 1.5 s"),
        (lambda it: it.others.update({"reconcile": {"a": "700"}}), "a reconciliation waits for a, due for 0.3 s"),
    ],
)
def test_what_is_still_under_way_is_reported(change: Change, says: str) -> None:
    assert list(ends.left_over(good())) == []
    assert says in list(ends.left_over(changed(change)))


def works(**slots: int) -> Works:
    """Return the running work of both claims of `good`."""
    made = Works(lambda _: {"VCPU": 4}, Random(1))
    made.start("h1", "a", Work(TOKEN, {"VCPU": 2, **slots}))
    made.start("h2", "b", Work(TOKEN, {"VCPU": 4}))
    return made


def test_machines_that_disagree_are_reported() -> None:
    assert list(ends.machines_agree(good(), works())) == []
    fewer = works()
    fewer.stop("h1", "a", TOKEN)
    assert list(ends.machines_agree(good(), fewer)) == ["claim a is active on h1, and its work does not run"]
    more = works()
    more.start("h1", "b", Work(TOKEN, {}))
    told = list(ends.machines_agree(good(), more))
    assert told == ["work of b runs on h1, and no claim says so", "b runs on more than one host"]
    for token, slots, says in (
        ("2-b.6", {"VCPU": 1}, "its work has {'VCPU': 1}"),
        ("2-b.99", {"VCPU": 2}, "runs under 2-b.99"),
        ("3-a.1", {"VCPU": 2}, "runs under 3-a.1"),
    ):
        other = works()
        other.start("h1", "a", Work(token, slots, placed=TOKEN))
        (problem,) = ends.machines_agree(good(), other)
        assert says in problem
    earlier = works()
    earlier.start("h1", "a", Work("2-b.6", {"VCPU": 2}, placed=TOKEN))
    assert list(ends.machines_agree(good(), earlier)) == [], "it was resized, and back"


def test_a_claim_in_two_cells_is_reported() -> None:
    look = {"c1": good(), "c2": other_cell()}
    assert list(ends.once(look)) == []
    look["c2"].claims["a"] = look["c2"].claims["e"]
    assert list(ends.once(look)) == ["claim a is in c1 and in c2"]


def test_cells_together_have_what_became_of_an_id_where_it_was_and_not_that_it_was_closed_elsewhere() -> None:
    look = {"c1": View(ended={"a": "void", "b": "released"}), "c2": View(ended={"a": "released", "b": "void"})}
    assert together(look).ended == {"a": "released", "b": "released"}
    assert together({"c1": good(), "c2": other_cell()}).claims.keys() == {"a", "b", "e"}


def test_what_lies_in_a_cell_is_sorted_by_its_kind_and_name() -> None:
    view = view_of(
        "c2",
        [
            ("rs:{c2}:meta", "hash", ["epoch", EPOCH]),
            ("rs:{c2}:host:h1", "hash", ["claims", "1"]),
            ("rs:{c2}:claims:h1", "set", ["a"]),
            ("rs:{c2}:claim:a", "hash", ["host", "h1"]),
            ("rs:{c2}:quota:limited", "hash", ["limit.claims", "20"]),
        ],
    )
    assert (view.epoch, view.hosts, view.held) == (EPOCH, {"h1": {"claims": "1"}}, {"h1": {"a"}})
    assert (view.claims, view.others) == ({"a": {"host": "h1"}}, {"quota:limited": {"limit.claims": "20"}})


def test_a_claim_that_has_ended_shows_why_and_where_it_had_failed() -> None:
    fields = ["state", "ended", "end_reason", "failed", "tried.h1", "1", "tried.h2", "1"]
    objects = [
        ("rs:{c1}:claim:a", "hash", [*fields, "kept", "0"]),
        ("rs:{c1}:claim:b", "hash", ["state", "ended", "end_reason", "shelved", "kept", "1"]),
    ]
    view = view_of("c1", objects)
    assert (view.ended, view.shelved, view.kept) == ({"a": "failed", "b": "shelved"}, {"b"}, {"b"})
    assert view.tried == {"a": {"h1", "h2"}, "b": set()}


def moving() -> View:
    """Return `good` with claim `a` moving from h1 to h3: host, group and zone count its second placement too."""
    view = good()
    view.claims["a"] |= {
        "project": QUOTA.project,
        "placement.2-b.9.host": "h3",
        "placement.2-b.9.state": "claimed",
        "placement.2-b.9.counted.zone": "az1",
        "placement.2-b.9.amount.VCPU": "3",
    }
    view.hosts["h3"] = {**view.hosts["h1"], "claimed.VCPU": "3", "starting": "1"}
    view.held["h3"] = {"a"}
    view.groups["g"] |= {"members": "3", "count.host=h3": "1", "count.zone=az1": "3"}
    return view


def test_a_claim_on_its_way_counts_at_both_places_and_once_in_its_quota() -> None:
    assert list(books(moving())) == []
    assert list(ends.settled(moving(), ["h1", "h2", "h3"])) == ["claim a on h3 is claimed"]
    used = {"used.claims": "1", "used.VCPU": "3"}
    assert list(ends.quota_agrees(moving(), {"c1": used})) == []
    lost = moving()
    lost.hosts["h3"]["claimed.VCPU"] = "0"
    assert list(books(lost)) == ["host h3 says 0 VCPU are claimed, its claims hold 3"]


def test_a_place_that_a_claim_has_beside_others_can_be_too_much() -> None:
    """Only this placement is new: the claim itself existed before."""
    full, more = moving(), moving()
    for view in (full, more):
        view.hosts["h3"]["capacity.VCPU"] = "2"
    more.claims["a"] |= {"placement.2-b.11.host": "h3", "placement.2-b.11.amount.VCPU": "1"}
    assert list(succession(full, full)) == []
    (problem, _) = succession(full, more)
    assert problem == "host h3 holds more VCPU than it has, and got still more: ['a']"


def test_a_claim_that_waits_for_another_place_is_not_settled() -> None:
    waiting = changed(lambda it: it.claims["a"].update({"state": "pending"}))
    assert "claim a is pending" in list(ends.settled(waiting, ["h1", "h2"]))


def test_what_shrank_under_its_claims_may_hold_them_and_nothing_more() -> None:
    shrunk, more = good(), good()
    for view in (shrunk, more):
        view.hosts["h2"]["capacity.VCPU"] = "1"
    assert list(succession(good(), shrunk)) == []
    more.claims["c"] = {"id": "c", "host": "h2", "state": "active", "token": "2-b.8", "amount.VCPU": "1"}
    (problem,) = succession(shrunk, more)
    assert problem == "host h2 holds more VCPU than it has, and got still more: ['c']"


def test_a_name_that_passes_to_another_device_is_reported() -> None:
    former, now = good(), good()
    former.devices = {("h1", "gpu0"): "GPU-a", ("h1", "gpu1"): "GPU-b"}
    now.devices = {("h1", "gpu1"): "GPU-b", ("h1", "gpu2"): "GPU-c"}
    assert list(succession(former, now)) == []
    now.devices["h1", "gpu0"] = "GPU-b"
    assert list(succession(former, now)) == ["gpu0 of h1 was device GPU-a, and is GPU-b"]
    read = view_of("c1", [("rs:{c1}:attributes:h1", "hash", ["device.gpu0", "GPU-a", "pool.gpu0", "/"])])
    assert read.devices == {("h1", "gpu0"): "GPU-a"}


def test_work_on_a_device_under_another_name_is_reported() -> None:
    it = works()
    slots = {"gpu0/CUSTOM_GPU_MILLI": 500}
    it.start("h1", "c", Work(TOKEN, slots, devices={"gpu0": "GPU-h1-0"}))
    it.start("h1", "d", Work(TOKEN, slots, devices={"gpu0": "GPU-h1-0"}))
    assert it.broken == []
    it.start("h1", "e", Work(TOKEN, slots, devices={"gpu1": "GPU-h1-0"}))
    assert it.broken == ["GPU-h1-0 of h1 was gpu0, and is gpu1 for e"]
    assert it.over_committed == 1


def test_two_works_on_one_slot_are_reported_with_their_hosts() -> None:
    it = works()
    assert it.broken == []
    it.start("h1", "c", Work(TOKEN, {"VCPU": 3}))
    (problem,) = it.broken
    assert problem == "h1 runs 5 VCPU of its 4 after starting c: ['a', 'c']"
    assert it.over_committed == 1


def test_journals_that_disagree_are_reported() -> None:
    entry = Journaled(TOKEN, "active", True)
    right = {("h1", "a"): entry, ("h2", "b"): entry}
    assert list(ends.journals_agree(good(), right)) == []
    assert any("whose journal does not hold it" in one for one in ends.journals_agree(good(), {("h1", "a"): entry}))
    assert any("the store does not" in one for one in ends.journals_agree(good(), right | {("h1", "c"): entry}))
    for wrong in (
        Journaled("2-b.6", "active", True),
        Journaled(TOKEN, "starting", True),
        Journaled(TOKEN, "active", False),
    ):
        assert any("in the journal" in one for one in ends.journals_agree(good(), right | {("h1", "a"): wrong}))


def test_journals_are_read_while_an_agent_has_them_open(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(TABLES)
        row: dict[str, object] = {
            "host": "h1",
            "placed": TOKEN,
            "id": "a",
            "token": TOKEN,
            "root": TOKEN,
            "state": "active",
            "work_end": "",
        }
        row |= {"was_active": 0, "is_running": 1, "named": "", "record": "{}", "before": "{}", "moves": "{}"}
        names = ", ".join(row)
        connection.execute(f"INSERT INTO placement ({names}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
        connection.commit()
        assert ends.read_journals([path]) == {("h1", "a"): Journaled(TOKEN, "active", True)}


def owners() -> Ledger:
    """Return a ledger in which both claims of `good` have an owner."""
    ledger = Ledger()
    for claim_id, host in (("a", "h1"), ("b", "h2")):
        ledger.hear("s0", "asked", {"ids": [claim_id], "number": 1})
        ledger.hear("s0", "placed", {"ids": [claim_id], "hosts": [host], "tokens": [TOKEN]})
    return ledger


def test_claims_that_nobody_owns_are_reported() -> None:
    assert list(ends.owners_agree(good(), owners())) == []
    assert list(ends.owners_agree(good(), Ledger())) == [
        "claim a is there, and to its owner it is never asked for",
        "claim b is there, and to its owner it is never asked for",
    ]
    given = owners()
    given.hear("s0", "giving", {"id": "a"})
    assert list(ends.owners_agree(good(), given)) == [], "not answered yet: it may be there"
    given.hear("s0", "gave", {"id": "a", "how": "free"})
    assert list(ends.owners_agree(good(), given)) == ["claim a is there, and to its owner it is free"]


def test_what_nobody_says_again_is_reported_until_an_operator_has_given_it_back() -> None:
    """Its owner got the reply to the release, the store has lost it, and the scheduler that replied was killed."""
    given = owners()
    given.hear("s0", "giving", {"id": "a"})
    given.hear("s0", "gave", {"id": "a", "how": "free"})
    given.silence("s1")
    assert list(ends.owners_agree(good(), given)) == ["claim a is there, and to its owner it is free"]
    given.silence("s0")
    assert list(ends.owners_agree(good(), given)) == ["claim a is left by a caller who was killed"]


def test_what_is_there_again_is_wrong_where_nothing_can_have_been_lost() -> None:
    world = Mock(operator=Mock(came_back={"a"}), ledger=Mock(given={"a": "free"}))
    assert list(came_back(world, is_allowed=False)) == ["claim a was there, and its owner had been told: free"]
    assert list(came_back(world, is_allowed=False)) == [], "it is told once"
    world.operator.came_back = {"a"}
    assert list(came_back(world, is_allowed=True)) == []


def test_what_a_killed_process_leaves_is_what_the_next_begins_with() -> None:
    ledger = owners()
    ledger.hear("s0", "asked", {"ids": ["c-0", "c-1"], "number": 7})
    ledger.hear("s0", "giving", {"id": "b"})
    ledger.hear("s0", "shelved", {"id": "d"})
    left = {"held": ["a"], "shelved": ["d"], "asked": [["c-0", "c-1"]], "giving": ["b"], "number": 7}
    assert ledger.left_by("s0") == left
    assert ledger.left_by("s1") == {"held": [], "shelved": [], "asked": [], "giving": [], "number": 0}


def test_what_is_failed_or_shelved_is_open_until_it_is_answered() -> None:
    ledger = owners()
    for said in ("failing", "shelving"):
        ledger.hear("s0", said, {"id": "a"})
        assert ("a" in ledger.owned, ledger.open_ids()) == (False, {"a"})
        ledger.hear("s0", "kept", {"id": "a", "host": "h2", "token": TOKEN})
        assert (ledger.owned["a"].host, ledger.open_ids()) == ("h2", set())
    ledger.hear("s0", "shelving", {"id": "a"})
    ledger.hear("s0", "shelved", {"id": "a"})
    assert ("a" in ledger.owned, "a" in ledger.shelved, ledger.open_ids()) == (False, True, set())
    assert ledger.level("shelved").acknowledged == 1


def test_shelved_claims_that_nobody_owns_are_reported() -> None:
    shelved = changed(lambda it: it.shelved.add("c"))
    ledger = owners()
    assert list(ends.owners_agree(shelved, ledger)) == ["claim c is there, and to its owner it is never asked for"]
    ledger.hear("s0", "shelved", {"id": "c"})
    assert list(ends.owners_agree(shelved, ledger)) == []


def test_what_a_killed_caller_left_is_reported_until_an_operator_has_given_it_back() -> None:
    """The server generated the id, so no owner knows it: the request's consumer identifies the owner."""
    ledger = owners()
    ledger.hear("s0", "asked", {"ids": ["s0-made-1"], "number": 1})
    ledger.hear("s0", "orphaned", {"ids": ["s0-made-1"]})
    assert ledger.left_by("s0")["asked"] == []
    view = changed(lambda it: with_more(it, "h1", "c1.f00", **{"amount.VCPU": "1", "consumer": "s0-made-1"}))
    assert list(ends.owners_agree(view, ledger)) == ["claim c1.f00 is left by a caller who was killed"]


def test_a_quota_that_disagrees_is_reported() -> None:
    """Usage is compared with the claims as a sum over the cells, and the cells' shares with the limit."""
    view = changed(lambda it: it.claims["a"].update({"project": QUOTA.project}))
    used = {"c1": {"used.VCPU": "1"}, "c2": {"used.VCPU": "1", "used.claims": "1", "share.VCPU": "24"}}
    assert list(ends.quota_agrees(view, used)) == []
    assert list(ends.quota_agrees(good(), {"c1": {}})) == []
    told = list(ends.quota_agrees(view, {**used, "c1": {"used.VCPU": "2", "share.VCPU": "1"}}))
    assert told == [
        "the quota of limited says 3 VCPU, its claims are 2",
        "cells may use 25 VCPU of the quota of limited together, more than its limit",
    ]


MOST = QUOTA.limits["claims"]


def metered(here: range, there: range) -> Look:
    """Return two cells with claims of these numbers, of the project that has a quota."""
    look = {"c1": good(), "c2": other_cell()}
    for view, host, numbers in ((look["c1"], "h1", here), (look["c2"], "h3", there)):
        view.others[f"quota:{QUOTA.project}"] = {}
        for number in numbers:
            with_more(view, host, f"m{number}", **{"amount.VCPU": "0", "project": QUOTA.project})
    return look


def test_a_host_in_two_cells_is_reported() -> None:
    assert list(homes({"c1": good(), "c2": other_cell()})) == []
    twice = {"c1": good(), "c2": changed(lambda it: it.hosts.pop("h1"))}
    assert list(homes(twice)) == ["host h2 is in c1 and in c2"]
    watcher = Watcher(unread, [("c1", "c2")])
    watcher.take(twice)
    assert any("host h2 is in c1 and in c2" in problem for problem in watcher.broken)


def test_a_project_that_comes_to_have_more_than_its_quota_is_reported() -> None:
    """The claims of both cells count together. One server has both cells here, so each read is consistent."""
    full, more = metered(range(MOST - 2), range(MOST - 2, MOST)), metered(range(MOST - 2), range(MOST - 2, MOST + 1))
    assert list(quota(metered(range(2), range(0)), full, full)) == []
    (problem,) = quota(full, full, more)
    assert "project limited has 21 claims, more than its quota, and got still more: ['m20']" in problem
    assert list(quota(more, more, more)) == [], "it was so, and got no more"


@pytest.mark.parametrize(
    "change",
    [
        lambda look: look["c1"].others.clear(),
        lambda look: look["c2"].meta.update({"settled": "0"}),
        lambda look: look["c2"].hosts["h3"].update({"epoch": "1-a"}),
        lambda look: look["c2"].meta.update({"epoch": "1-a"}),
    ],
    ids=["not declared", "a cell is not settled", "a host has not attested", "another epoch"],
)
def test_what_hosts_brought_back_of_a_project_is_a_fact(change: Callable[[Look], object]) -> None:
    full, more = metered(range(MOST), range(0)), metered(range(MOST), range(MOST, MOST + 1))
    change(full)
    assert list(quota(full, full, more)) == []


def test_claims_of_cells_on_two_servers_count_once_they_were_seen_twice() -> None:
    """A read of two servers may combine a claim that has ended in one cell with a later claim in the other."""
    watcher = Watcher(unread, [("c1",), ("c2",)])
    full, after = metered(range(MOST), range(0)), metered(range(1, MOST), range(MOST, MOST + 1))
    torn = {"c1": full["c1"], "c2": after["c2"]}
    for look in (full, full, full, torn, after, after):
        watcher.take(look)
    assert watcher.broken == []
    for _ in range(2):
        watcher.take(metered(range(MOST + 1), range(0)))
    (problem,) = watcher.broken
    assert "['m0']" in problem
    assert watcher.over_committed == 1


def replica() -> dict[str, Any]:
    """Return the report of a scheduler whose replica equals `good`."""
    hosts = {
        name: {
            "version": version,
            "claims": 1,
            "starting": 0,
            "alive": True,
            "attested": True,
            "zone": "az1",
            "capacity.VCPU": 4,
            "claimed.VCPU": claimed,
        }
        for name, version, claimed in (("h1", 5, 2), ("h2", 6, 4))
    }
    counts = {"members": 2, "count.host=h1": 1, "count.host=h2": 1, "count.zone=az1": 2}
    declared = {"server-group g": {"version": 3, **counts}, "pool lic": {"slot.CUSTOM_SEAT": {"claimed": 1}}}
    return {"epoch": EPOCH, "seq": 9, "hosts": hosts, "declared": declared}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda it: it.update({"problem": "away"}), "s0 cannot catch up: away"),
        (lambda it: it.update({"epoch": "1-a"}), "s0 is in epoch 1-a"),
        (lambda it: it["hosts"].pop("h1"), "differ by hosts ['h1']"),
        (lambda it: it["hosts"]["h1"].update({"claimed.VCPU": 3}), "s0 has h1 claimed.VCPU 3, the store 2"),
        (lambda it: it["hosts"]["h1"].update({"version": 4}), "s0 has h1 version 4, the store 5"),
        (lambda it: it["hosts"]["h1"].update({"attested": False}), "s0 has h1 attested False"),
        (lambda it: it["declared"]["server-group g"].update({"members": 1}), "s0 has group g"),
        (lambda it: it["declared"]["pool lic"].clear(), "s0 has pool lic"),
    ],
)
def test_a_replica_that_is_not_the_stores_is_reported(change: Callable[[dict[str, Any]], object], says: str) -> None:
    assert list(ends.replica_agrees("s0", replica(), good())) == []
    wrong = replica()
    change(wrong)
    assert any(says in problem for problem in ends.replica_agrees("s0", wrong, good()))


def test_a_group_that_never_had_a_member_here_has_none_in_the_replica() -> None:
    seen, view = replica(), changed(lambda it: it.groups.update({"new": {"policy": "anti-affinity"}}))
    seen["declared"]["server-group new"] = {"version": 1, "members": 0}
    assert list(ends.replica_agrees("s0", seen, view)) == []
    seen["declared"]["server-group new"]["members"] = 1
    assert any("s0 has group new" in problem for problem in ends.replica_agrees("s0", seen, view))


def test_only_what_is_asked_for_afterwards_is_the_first_of_a_cell() -> None:
    placings = Placings()
    placings.note(("a",), "c1")
    placings.look_for_first([("b",)])
    placings.note(("b",), "c1")
    placings.note(("c",), "c2")
    assert placings.first.keys() == {"c2"}
    assert placings.by_cell == {"c1": 2, "c2": 1}


def test_every_cell_has_hosts_and_no_host_is_in_two() -> None:
    here, there = hosts_in("c1", ("c1", "c2")), hosts_in("c2", ("c1", "c2"))
    assert (len(here), len(there), len({*here, *there})) == (20, 30, 50)
    assert {cell_of(agent_of(host), ("c1", "c2")) for host in here} == {"c1"}
    assert len(hosts_in("c1", ("c1",))) == 50


def test_whatever_is_left_is_reported() -> None:
    empty = View(
        meta=good().meta,
        hosts={"h1": {"claims": "0", "starting": "0", "claimed.VCPU": "0"}},
        groups={"g": {"members": "0"}},
        pools={"lic": {"claimed.CUSTOM_SEAT": "0"}},
    )
    assert list(ends.nothing_is_left(empty)) == []
    assert list(ends.nothing_runs(Works(lambda _: {}, Random(1)), {})) == []

    def told(change: Change) -> Iterator[str]:
        wrong = copy.deepcopy(empty)
        change(wrong)
        return ends.nothing_is_left(wrong)

    assert "claim a is left, active" in told(lambda it: it.claims.update({"a": {"state": "active", "host": "h1"}}))
    assert "host h1 has claimed.VCPU 1" in told(lambda it: it.hosts["h1"].update({"claimed.VCPU": "1"}))
    assert "pool lic has claimed.CUSTOM_SEAT 1" in told(lambda it: it.pools["lic"].update({"claimed.CUSTOM_SEAT": "1"}))
    assert "group g has members 1" in told(lambda it: it.groups["g"].update({"members": "1"}))
    assert "ended claim a is remembered without end" in told(lambda it: it.kept.add("a"))
    assert "key gang:a is left" in told(lambda it: it.others.update({"gang:a": {}}))
    assert "claim a has a deadline" in told(lambda it: it.deadlines.update({"a": 1.0}))
    assert "1 notifications lie in the inbox of h1" in told(lambda it: it.inboxes.update({"h1": 1}))
    assert "work of a is left on h1" in ends.nothing_runs(works(), {})
    entry = {("h1", "a"): Journaled(TOKEN, "active", True)}
    assert "the journal of h1 still holds a" in ends.nothing_runs(Works(lambda _: {}, Random(1)), entry)
