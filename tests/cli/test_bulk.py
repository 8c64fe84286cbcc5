"""`release`, `renew`, `shelve` and `unshelve` of all claims that match filters."""

import pytest
import redis

from tests.cli.conftest import Redsched

BOTH_LINKS = True


@pytest.fixture(autouse=True)
def _claims(redsched: Redsched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Place two claims of project web on h1, and one of db."""
    monkeypatch.setenv("REDSCHED_PICK_FROM", "1")
    for name, project in (("a", "web"), ("b", "web"), ("c", "db")):
        redsched("select", "VCPU=1", "--id", name, "--project", project, "--consumer", name).check()


def left(redsched: Redsched) -> list[str]:
    return [one["claim_id"] for one in redsched("claim", "list", "--json").check().json()["claims"]]


def test_a_dry_run_shows_the_claims_in_a_table(redsched: Redsched) -> None:
    shown = redsched("claim", "release", "--project", "web", "--dry-run").check().output
    heads, *rows, counts = shown.splitlines()
    assert heads.split() == ["CLAIM", "HOST", "STATE", "OUTCOME"]
    assert [row.split() for row in rows] == [[one, "h1", "claimed", "selected"] for one in "ab"]
    assert counts == "dry run: 2 claims would be released"
    assert max(map(len, shown.splitlines())) <= 80
    assert left(redsched) == ["a", "b", "c"]
    of_one = redsched("claim", "shelve", "--project", "db", "--dry-run").check().output
    assert of_one.endswith("\ndry run: 1 claim would be shelved\n")


def test_all_of_a_project_are_released(redsched: Redsched) -> None:
    assert redsched("claim", "release", "--project", "web", "--yes").check().output.endswith("2 released\n")
    assert left(redsched) == ["c"]
    assert redsched("claim", "release", "--project", "web", "--yes").check().output == "no claims\n"


def test_a_filter_that_is_given_again_takes_either_value(redsched: Redsched) -> None:
    redsched("claim", "confirm", "a").check()
    either = ("--state", "active", "--state", "claimed", "--consumer", "a", "--consumer", "c")
    shown = redsched("claim", "list", *either, "--json").check().json()["claims"]
    assert [one["claim_id"] for one in shown] == ["a", "c"]
    assert redsched("claim", "shelve", *either, "--dry-run").check().output.endswith("2 claims would be shelved\n")
    redsched("events", "--kind", "claimed", "--kind", "fialed").check_failed(2, "unknown kind 'fialed'")
    assert "h1" in redsched("host", "list", "--status", "draining", "--status", "enabled").check().output


def test_more_than_a_page_is_worked_off(redsched: Redsched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redsched.cli.verbs.bulk.PAGE", 1)
    shown = redsched("claim", "shelve", "--cell", "c1", "--yes", "--json").check().json()
    assert ([one["outcome"] for one in shown["results"]], shown["next"]) == (["shelved"] * 3, None)


def test_shelved_claims_are_listed(redsched: Redsched) -> None:
    redsched("claim", "shelve", "--project", "web", "--yes").check()
    shown = redsched("claim", "list", "--state", "shelved", "--json").check().json()["claims"]
    assert [one["claim_id"] for one in shown] == ["a", "b"]
    redsched("claim", "unshelve", "--project", "web", "--wait", "5").check_failed(2, "--wait is for a single claim")
    assert redsched("claim", "unshelve", "--project", "web", "--yes").check().output.endswith("2 unshelved\n")
    assert left(redsched) == ["a", "b", "c"]
    redsched("claim", "list", "--state", "ended").check_failed(2, "--state")
    redsched("claim", "release", "--host", "nonesuch").check_failed(4, "no host 'nonesuch'")


def test_renew_takes_the_lease_for_all(redsched: Redsched) -> None:
    renewed = redsched("claim", "renew", "--state", "claimed", "--yes", "--lease", "600").check()
    assert renewed.output.endswith("3 renewed\n")


def test_one_that_is_refused_is_exit_code_3_and_the_others_are_done(redsched: Redsched) -> None:
    redsched("claim", "confirm", "a").check()
    redsched("claim", "release", "a").check()
    ran = redsched("claim", "shelve", "--project", "web", "--yes")
    assert ran.exit_code == 3
    assert [line.split() for line in ran.output.splitlines()[1:3]] == [
        ["a", "h1", "ending", "refused:", "claim-state"],
        ["b", "h1", "claimed", "shelved"],
    ]


UNCLEAR = {
    ("claim", "release"): "either claim ids or filters",
    ("claim", "release", "--dry-run"): "either claim ids or filters",
    ("claim", "release", "a", "--project", "web"): "either claim ids or filters",
    ("claim", "renew", "a", "--dry-run"): "--dry-run requires filters",
    ("claim", "shelve", "--project", "web", "--token", "1-a.1"): "--token names a single placement",
    ("claim", "shelve", "--project", "no such name!"): "project",
    ("claim", "release", "--cell", "other"): "no cell 'other'",
}


def test_it_must_be_clear_which_claims_are_meant(redsched: Redsched) -> None:
    for words, said in UNCLEAR.items():
        redsched(*words).check_failed(4 if "other" in words else 2, said)
        assert left(redsched) == ["a", "b", "c"]


def test_claims_are_selected_by_their_age(redsched: Redsched, store: str) -> None:
    """Those before a time and those since are all of them, and none is both."""
    with redis.Redis.from_url(store, protocol=2) as client:
        for key in client.scan_iter("rs:{c1}:claim:a"):
            fields = client.hgetall(key)
            [name] = [one for one in fields if one.endswith(b"claimed_at_ms")] or [b""]
            assert name, fields
            client.hset(key, name, str(int(fields[name]) - 3_600_000))
    assert redsched("claim", "list", "-o", "name", "--older-than", "30m").check().output.split() == ["a"]
    assert redsched("claim", "list", "-o", "name", "--newer-than", "30m").check().output.split() == ["b", "c"]
    both = ("--older-than", "1m", "--newer-than", "2h")
    assert redsched("claim", "list", "-o", "name", *both).check().output.split() == ["a"]
    assert "1 claim would be released" in redsched("claim", "release", "--older-than", "30m", "--dry-run").output
    redsched("claim", "list", "--older-than", "2h", "--newer-than", "1h").check_failed(
        2, "give --newer-than the longer"
    )
